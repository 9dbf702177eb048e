"""Which attacks there are. Names lead to classes only when asked for."""

from __future__ import annotations

import importlib

from fedrec.attacks.contract import Poison, Reader
from fedrec.errors import unknown

Kind = type[Reader] | type[Poison]

BUILT_IN: dict[str, str] = {
    # a curious server
    "touched": "fedrec.attacks.one_upload:TouchedRows",
    "norms": "fedrec.attacks.one_upload:RowNorms",
    "sign": "fedrec.attacks.one_upload:PrincipalSign",
    "named": "fedrec.attacks.one_upload:NamedItems",
    "pairs": "fedrec.attacks.pair_sums:PairSums",
    "intersection": "fedrec.attacks.over_rounds:Intersection",
    "averaging": "fedrec.attacks.over_rounds:Averaging",
    "imia": "fedrec.attacks.shadows:Shadows",
    "size": "fedrec.attacks.history_size:HistorySize",
    "losses": "fedrec.attacks.history_size:Losses",
    "metrics": "fedrec.attacks.metric_sums:MetricSums",
    # a server that does not keep to the protocol
    "columns": "fedrec.attacks.asked_columns:AskedColumns",
    # a curious participant
    "mixture": "fedrec.attacks.over_rounds:Mixture",
    # dishonest clients
    "boost": "fedrec.attacks.promotion:Boost",
    "pipattack": "fedrec.attacks.promotion:PipAttack",
    "replacement": "fedrec.attacks.promotion:Replacement",
    "pieck": "fedrec.attacks.promotion:Pieck",
    "flip": "fedrec.attacks.untargeted:Flip",
    "noise": "fedrec.attacks.untargeted:NoiseUpload",
    "fedattack": "fedrec.attacks.untargeted:FedAttack",
    "sizes": "fedrec.attacks.untargeted:InflatedSizes",
    "free-rider": "fedrec.attacks.untargeted:FreeRider",
}

_registered: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make an attack known under its ``name``; usable as a decorator."""
    _registered[kind.name] = kind
    return kind


def forget(name: str) -> None:
    """Undo :func:`register`."""
    _registered.pop(name, None)


def names() -> list[str]:
    """All known names."""
    return list(dict.fromkeys([*BUILT_IN, *_registered]))


def find(name: str) -> Kind:
    """The class of an attack; an unknown name is bad input, with the nearest known."""
    if name in _registered:
        return _registered[name]
    if name not in BUILT_IN:
        raise unknown("attack", name, names())
    module, _, attribute = BUILT_IN[name].partition(":")
    kind: Kind = getattr(importlib.import_module(module), attribute)
    return kind


def readers() -> list[str]:
    """Names of the attacks that only read."""
    return [name for name in names() if issubclass(find(name), Reader)]


def poisons() -> list[str]:
    """Names of the attacks of dishonest clients."""
    return [name for name in names() if issubclass(find(name), Poison)]
