"""What a toy run gives, written so that no name of a class, a module or a field is needed to compare it later."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.method import Method
from fedrec.core.state import flatten
from fedrec.deploy.node.node import Node
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import find

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))  # nodes that answer in process

from direct import RUN, federation
from golden_cases import OWN, SMALL, WORLD, Case

Figures = dict[str, Any]
NODES = 2


def settings_of(case: Case) -> Any:
    """The run's settings: small ones where the method has them, the method's own, the case's."""
    kind = find(case.method)
    small = {key: value for key, value in SMALL.items() if key in kind.Settings.model_fields}
    rounds = {} if getattr(kind, "one_shot", False) else {"rounds": 3}
    given = {"data": WORLD, "seed": 5, "robust": "none", **rounds, **case.options}
    return resolve(case.method, {**given, "settings": {**small, **OWN.get(case.method, {}), **case.settings}})


def is_federated(case: Case) -> bool:
    return issubclass(find(case.method), Method)


def simulated(case: Case) -> Figures:
    """The case in process."""
    prepared = prepare(settings_of(case))
    progress = run_rounds(prepared.runtime, prepared.plan, Progress(), lambda record, now: None)
    states = {part: arrays_of(value) for part, value in prepared.runtime.snapshot().items()}
    return {"rounds": rounds_of(progress.records), "states": states}


def deployed(case: Case, folder: Path) -> Figures:
    """The case over two nodes in process, through the bytes that would cross a network."""
    runtime, plan, progress, exchange = federation(folder, settings_of(case), NODES)
    run_rounds(runtime, plan, progress, lambda record, now: None)
    states = {"server": arrays_of(runtime.server)}
    for name, options in sorted(exchange.options.items()):
        node = Node(options, RUN)
        states[name] = arrays_of(node.private(f"state-{max(node.store.states())}.safetensors"))
    return {"rounds": rounds_of(progress.records), "states": states}


def rounds_of(records: list[Record]) -> list[Figures]:
    """Every figure of every round, but for seconds."""
    return [
        {
            "loss": record.loss,
            "participants": record.participants,
            "missing": list(record.missing),
            "bytes": [record.bytes["upload"], record.bytes["download"]],
            "valid": record.valid,
            "test": record.test,
        }
        for record in records
    ]


def arrays_of(state: Any) -> list[list[Any]]:
    """The arrays of a state, whatever they are called: shape, type, sum, sum of sizes, largest, digest; sorted."""
    return sorted(_array(content) for content in flatten(state)[0].values())


def _array(content: np.ndarray) -> list[Any]:
    wide = content.astype(np.float64)
    numbers = [float(wide.sum()), float(np.abs(wide).sum()), float(wide.max(initial=-np.inf)) if wide.size else 0.0]
    digest = hashlib.blake2b(np.ascontiguousarray(content).tobytes(), digest_size=8).hexdigest()
    return ["x".join(map(str, content.shape)), content.dtype.str, *numbers, digest]
