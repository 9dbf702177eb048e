"""Settings as YAML: plain values only. Tags, anchors and a key twice are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrec.core.settings import ODD_YAML
from fedrec.errors import BadInput

LARGEST = 1 << 20


def dump_yaml(value: dict[str, Any]) -> str:
    """Plain values as YAML, each written out."""
    import yaml

    class Plain(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return str(yaml.dump(value, Dumper=Plain, sort_keys=False))


def parse_yaml(path: Path, text: str) -> dict[str, Any]:
    """The mapping in a text; ``path`` is where it came from."""
    import yaml

    class Strict(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it refers to a part of itself")
            if self.peek_event().tag is not None:
                raise ValueError("it has a tag")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value]
            if any(not isinstance(name, str) for name in names) or len(set(names)) < len(names):
                raise ValueError("a key appears twice, or is not a word")
            return super().construct_mapping(node, deep)

    try:
        if len(text) > LARGEST:
            raise ValueError(f"it is longer than {LARGEST} characters")
        value = yaml.load(text, Loader=Strict)
    except (yaml.YAMLError, *ODD_YAML) as problem:
        why = "it is nested too deep" if isinstance(problem, RecursionError) else " ".join(str(problem).split())[:160]
        raise BadInput(f"{path} cannot be read: {why}; restore it from a copy") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no settings; restore it from a copy")
    return value
