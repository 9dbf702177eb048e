"""State files as somebody with bad intentions would make them: any structure, with a checksum that fits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from fedrec.runs.sealed import KEY, ZEROS
from fedrec.runs.state_file import FORMAT, _seal


def craft(path: Path, structure: str, arrays: Mapping[str, Any], about: str = "{}") -> None:
    """A state file of the present format; its checksum fits whatever it says."""
    save_file(dict(arrays), path, metadata={"format": FORMAT, "structure": structure, "about": about, KEY: ZEROS})
    _seal(path)


def craft_old(path: Path, structure: str, arrays: Mapping[str, Any], about: str = "{}") -> None:
    """The same as 0.1.0 wrote it: no checksum at all."""
    save_file(dict(arrays), path, metadata={"structure": structure, "about": about})


def parts(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    """Structure, arrays and ``about`` of a state file, unchecked."""
    with safe_open(path, framework="numpy") as file:
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    return json.loads(metadata["structure"]), arrays, metadata["about"]


HOSTILE_NAMES = {
    "through a module": "fedrec.deploy.processes:os.system",
    "through an alias": "fedrec.experiment.recommend:np.save",
    "builtins": "builtins:exec",
    "bare builtin": "exec",
    "function": "fedrec.keyed:stream",
    "class that is no dataclass": "fedrec.runs.folder:RunFolder",
    "dataclass that is not expected": "fedrec.deploy.processes:Crew",
    "bare dataclass that is not expected": "Crew",
    "another method's class": "FedCaServer",
    "another method's class, as of 0.1.0": "fedrec.methods.fedca:FedCaServer",
    "class method": "fedrec.evaluation.sums:MetricSums.from_dict",
    "method of the class itself": "fedrec.methods.embedding:ItemServer.__init__",
    "dunder": "fedrec.methods.embedding:__builtins__.exec",
    "dunder of the class itself": "ItemServer.__class__",
    "module outside": "subprocess:Popen",
    "module outside with a known class": "elsewhere:ItemServer",
    "relative": ".:ItemServer",
    "empty": "",
    "colon": ":",
    "huge": "A" * 1_000_000,
    "not a word": "ItemServer\n\x00\u202e",
}
"""Names that must lead nowhere, by what they try."""


def hostile_structures(good: dict[str, Any]) -> dict[str, str]:
    """Structures that must be refused, by what is wrong; ``good`` is that of a fedavg model: server and private."""

    def changed(**server: Any) -> str:
        fields = {**good["dict"]["server"]["fields"], **server}
        named = {"class": good["dict"]["server"]["class"], "fields": {k: v for k, v in fields.items() if v}}
        return json.dumps({"dict": {**good["dict"], "server": named}})

    server, private = good["dict"]["server"], good["dict"]["private"]
    some_array = server["fields"]["items"]
    deep: Any = some_array
    for _ in range(200):
        deep = {"list": [deep], "tuple": False}
    text = json.dumps(good)
    return {
        "foreign field": changed(command={"plain": "true"}),
        "missing field": changed(items=None),
        "number for an array": changed(items={"plain": 3}),
        "list for an array": changed(items={"list": [some_array], "tuple": False}),
        "array for a dictionary": changed(networks=some_array),
        "numbers in a dictionary of arrays": changed(networks={"dict": {"a": {"plain": 1}}}),
        "class for an array": changed(items=private),
        "array that is not there": changed(items={"array": "/nowhere"}),
        "array taken twice": changed(networks={"dict": {"again": some_array}}),
        "path that climbs": changed(items={"array": "/../../server"}),
        "its own path": changed(items={"array": ""}),
        "private where the server belongs": json.dumps({"dict": {"server": private, "private": server}}),
        "a part too many": json.dumps({"dict": {**good["dict"], "more": {"plain": 1}}}),
        "a part too few": json.dumps({"dict": {"private": private}}),
        "nested deep": changed(items=deep),
        "nested without end": '{"list":[' * 100_000,
        "two kinds at once": changed(items={**some_array, "plain": 1}),
        "unknown kind": changed(items={"code": "1"}),
        "a number of 5,000 digits": changed(items={"plain": 1}).replace('{"plain": 1}', '{"plain": %s}' % ("9" * 5000)),
        "a key twice": text[:-1] + ', "dict": {}}',
        "not JSON": text[:-1],
        "not an object": "[1, 2]",
        "a word": '"ItemServer"',
        "empty": "",
    }
