"""Settings as YAML: plain values only. Tags, aliases, a key twice, and numbers that take long to read are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrec.core.settings import ODD_YAML
from fedrec.errors import BadInput

LARGEST = 1 << 19
"""Characters of a file."""
VALUES = 30_000
"""Words, numbers and lists in a file: reading one takes a tenth of a millisecond."""
DIGITS = 4300
"""Of a number; Python writes none with more."""
_TOO_LARGE = 10**DIGITS
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"


def dump_yaml(value: dict[str, Any]) -> str:
    """Plain values as YAML, each written out."""
    import yaml

    class Plain(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return str(yaml.dump(value, Dumper=Plain, sort_keys=False))


def read_text(path: Path) -> str:
    """What a file says, as far as it may be long: of one that is longer, one character more."""
    with open(path, encoding="utf-8") as file:
        return file.read(LARGEST + 1)


def parse_yaml(path: Path, text: str) -> dict[str, Any]:
    """The mapping in the text of a file that fedrec wrote; ``path`` is where it came from."""
    try:
        value = plain_content(text)
    except ValueError as problem:
        raise BadInput(f"{path} cannot be read: {problem}; restore it from a copy") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no settings; restore it from a copy")
    return value


def plain_content(text: str) -> Any:
    """What a text says; what it may not say is a :class:`ValueError` of one short line."""
    import yaml

    class Strict(yaml.SafeLoader):  # type: ignore[misc]
        composed = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it refers to a part of itself")
            if self.peek_event().tag is not None:
                raise ValueError("it has a tag")
            self.composed += 1
            if self.composed > VALUES:
                raise ValueError(f"it has more than {VALUES} values")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value]
            if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
                raise ValueError("a key appears twice, or is not a word")
            return super().construct_mapping(node, deep)

        def number(self, node: Any) -> int | float:
            word = self.construct_scalar(node)
            if ":" in word:
                raise ValueError("it has a number to base 60; write plain numbers, and times in quotes")
            if len(word) > DIGITS:
                raise ValueError(f"it has a number of more than {DIGITS} digits")
            made: int | float = self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)
            if isinstance(made, int) and abs(made) >= _TOO_LARGE:
                raise ValueError(f"it has a number of more than {DIGITS} digits")
            return made

    Strict.add_constructor(_INT, Strict.number)
    Strict.add_constructor(_FLOAT, Strict.number)
    if len(text) > LARGEST:
        raise ValueError(f"it is longer than {LARGEST} characters")
    try:
        return yaml.load(text, Loader=Strict)
    except (yaml.YAMLError, *ODD_YAML) as problem:
        why = "it is nested too deep" if isinstance(problem, RecursionError) else " ".join(str(problem).split())[:160]
        raise ValueError(why) from None
