"""Packages that only some tasks need: which extra brings each, and the one line where it is missing."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec

from fedrec.errors import BadInput

EXTRAS = {
    "alembic": "mlflow",
    "fastapi": "serve",
    "flwr": "deploy",
    "httptools": "serve",
    "matplotlib": "figures",
    "mlflow": "mlflow",
    "optuna": "tune",
    "sqlalchemy": "mlflow",
    "starlette": "serve",
    "submitit": "slurm",
    "tensorboard": "tensorboard",
    "uvicorn": "serve",
}
"""The extra of ``pyproject.toml`` that brings a package; named as it is imported."""


def installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported for that."""
    if package in sys.modules:
        return sys.modules[package] is not None
    return _found(package)


@cache
def _found(package: str) -> bool:
    """Looked for on disk once: kernels are asked for in every round."""
    return find_spec(package) is not None


def how_to_install(package: str) -> str:
    """``pip install 'fedrec[figures]'``; a package of the base, or a stranger, by its own name."""
    extra = EXTRAS.get(package)
    return f"pip install 'fedrec[{extra}]'" if extra else f"pip install {package}"


def needs(package: str, task: str) -> None:
    """Before work begins: bad input where a package is missing that the task cannot do without."""
    if not installed(package):
        raise BadInput(f"{task} needs {package}, which is not installed; {how_to_install(package)}")


def missing(problem: ModuleNotFoundError) -> BadInput | None:
    """What an import that failed means to a user; None where no extra of ours brings the package."""
    package = (problem.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return BadInput(f"this needs {package}, which is not installed; {how_to_install(package)}")


def left_out(package: str, what: str) -> str:
    """The line for what is done without a package; empty where it is there."""
    return "" if installed(package) else f"{what} left out: {package} is not installed ({how_to_install(package)})"
