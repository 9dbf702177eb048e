"""Which methods there are. Names lead to classes only when asked for, so that listing costs nothing."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fedrec.core.method import Method
from fedrec.core.reference import Reference
from fedrec.errors import BadInput, unknown
from fedrec.methods.from_file import imported

Kind = type[Method[Any, Any, Any, Any]] | type[Reference[Any]]

BUILT_IN: dict[str, str] = {
    # centralised references
    "random": "fedrec.methods.references.controls:RandomScores",
    "popularity": "fedrec.methods.references.controls:Popularity",
    "ease": "fedrec.methods.references.ease:Ease",
    "gfcf": "fedrec.methods.references.gfcf:GfCf",
    "mf": "fedrec.methods.references.mf:CentralMf",
    "neumf": "fedrec.methods.references.neumf:CentralNeuMf",
    "sasrec": "fedrec.methods.references.sasrec:CentralSasRec",
    "lightgcn": "fedrec.methods.references.lightgcn:LightGcn",
    "multvae": "fedrec.methods.vae.multvae:MultVae",
    "recvae": "fedrec.methods.vae.recvae:RecVae",
    "centdae": "fedrec.methods.vae.centdae:CentDae",
    # federated methods
    "local": "fedrec.methods.local:Local",
    "fcf": "fedrec.methods.fcf:Fcf",
    "fedavg": "fedrec.methods.fedavg:FedAvg",
    "fedmf": "fedrec.methods.fedmf:FedMf",
    "fedncf": "fedrec.methods.fedncf:FedNcf",
    "fedatt": "fedrec.methods.fedatt:FedAtt",
    "fedfast": "fedrec.methods.fedfast:FedFast",
    "perfedrec": "fedrec.methods.perfedrec:PerFedRec",
    "pfedgraph": "fedrec.methods.pfedgraph:PFedGraph",
    "gpfedrec": "fedrec.methods.gpfedrec:GPFedRec",
    "pfedrec": "fedrec.methods.pfedrec:PFedRec",
    "fedca": "fedrec.methods.fedca.fedca:FedCa",
    "fedca-approx": "fedrec.methods.fedca.approx:FedCaApprox",
    "fedvae": "fedrec.methods.vae.fedvae:FedVae",
    "feddae": "fedrec.methods.vae.feddae:FedDae",
    "cofedrec": "fedrec.methods.cofedrec:CoFedRec",
    "fedrap": "fedrec.methods.two_views.fedrap:FedRap",
    "fed3cr": "fedrec.methods.two_views.fed3cr:Fed3cr",
    "fediar": "fedrec.methods.two_views.fediar:FedIar",
    "fedease": "fedrec.methods.fedease:FedEase",
    "fedspectral": "fedrec.methods.fedspectral:FedSpectral",
    "fedelsa": "fedrec.methods.fedelsa:FedElsa",
    "fedcia": "fedrec.methods.fedcia.method:FedCia",
    "fedlightgcn": "fedrec.methods.fedlightgcn:FedLightGcn",
}

GROWN_OUT = {("fedca", "neighbours"): "fedca-approx"}
"""Settings that have become methods of their own: a run that sets one is a run of that method."""

ENTRY_POINT_GROUP = "fedrec.methods"

FILES = "FEDREC_METHODS"
"""Environment variable: files of methods, ``FILE.py:Class``, that all processes shall know; several with ``;``."""

_registered: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a method known under its ``name``; usable as a decorator.

    >>> @register
    ... class Mine(Method): ...           # doctest: +SKIP
    """
    if kind.name in BUILT_IN:  # its runs would be taken for the other's, and other processes would run the other
        raise BadInput(f"{kind.name!r} is the name of a method that is built in; give {kind.__name__} another")
    _registered[kind.name] = kind
    return kind


def registered() -> dict[str, Kind]:
    """Methods that were registered in this process, beside those built in."""
    return dict(_registered)


def forget(name: str) -> None:
    """Undo :func:`register`."""
    _registered.pop(name, None)


def name_of(word: str) -> str:
    """The name of the method that a word means: the word itself, or ``FILE.py:Class``, whose file is then imported.

    Processes that this one starts know the file, too (:data:`FILES`). ``FILE.py`` alone will do where it has only one.
    """
    file, _, wanted = word.partition(":")
    if not file.endswith(".py"):
        return word
    module = imported(Path(file))
    own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    kinds = {kind.__name__: kind for kind in own if issubclass(kind, Method | Reference) and hasattr(kind, "name")}
    if wanted and wanted not in kinds:
        raise unknown(f"method of {file}", wanted, kinds)
    if not wanted and len(kinds) != 1:
        raise BadInput(f"{file} has {len(kinds)} methods; write which one, as {file}:{next(iter(kinds), 'Class')}")
    kind = kinds[wanted or next(iter(kinds))]
    if kind.name in BUILT_IN:
        raise BadInput(f"{file}: {kind.name!r} is the name of a method that is built in; give {kind.__name__} another")
    register(kind)
    known = [*_files(), f"{Path(file).resolve()}:{kind.__name__}"]
    os.environ[FILES] = ";".join(dict.fromkeys(known))
    return kind.name


def _files() -> list[str]:
    """Files that the environment names: its user trusts them. A run's folder cannot name any."""
    return [word.strip() for word in os.environ.get(FILES, "").split(";") if word.strip()]


def refuse_unknown_elsewhere(names: Iterable[str]) -> None:
    """Methods that only this program knows are bad input where processes of their own shall run them.

    Those find what is built in, what an installed package announces, and what :data:`FILES` names.
    """
    installed = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    for name in sorted({*names} & {*_registered} - installed):
        kind = _registered[name]
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        where = f"{file or 'FILE.py'}:{kind.__name__}"
        if file is None or where not in _resolved(_files()):
            first = "" if file else "write it to a file, "
            raise BadInput(
                f"{name} is known to this program alone, and not to the processes that shall run it; {first}"
                f"name it {where!r}, or take one job"
            )


def _resolved(words: Iterable[str]) -> list[str]:
    """``FILE.py:Class`` with the whole path of the file."""
    parts = (word.rpartition(":") for word in words)
    return [f"{Path(file).resolve()}:{kind}" for file, _, kind in parts]


def names() -> list[str]:
    """All known names: built in, from installed packages, registered in this process."""
    installed = [point.name for point in entry_points(group=ENTRY_POINT_GROUP)]
    return list(dict.fromkeys([*BUILT_IN, *installed, *_registered]))


def find(name: str, settings: Mapping[str, Any] | None = None) -> Kind:
    """The class of a method, as it is run with ``settings``; an unknown name is bad input, with the nearest known."""
    for (method, setting), own in GROWN_OUT.items():
        if method == name and (settings or {}).get(setting):
            name = own
    if name in _registered:
        return _registered[name]
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        built_in: Kind = getattr(importlib.import_module(module), attribute)
        return built_in
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            installed: Kind = point.load()
            return installed
    for word in _files():
        if name_of(word) == name:
            return _registered[name]
    problem = unknown("method", name, names())
    raise BadInput(f"{problem}; {FILES}='FILE.py:Class' makes one of your own known")


def federated() -> list[str]:
    """Names of the federated methods."""
    return [name for name in names() if issubclass(find(name), Method)]


def centralised() -> list[str]:
    """Names of the centralised references."""
    return [name for name in names() if issubclass(find(name), Reference)]
