"""fedrec: personalised federated recommendation that people can trust, run and ship.

>>> import fedrec
>>> result = fedrec.run("popularity", data="demo")
>>> [r.item for r in result.recommend("u001", k=3)]      # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrec.experiment.summarise import Result

__version__ = "0.1.0"
__all__ = ["__version__", "open_run", "run"]


def run(method: str, data: str = "demo", *, out: str | Path | None = None, **options: Any) -> Result:
    """Train and judge a method; the same options as ``fedrec run``, with ``settings={...}`` for ``--set``.

    >>> fedrec.run("fedavg", data="ml-100k", rounds=50, settings={"dim": 16})      # doctest: +SKIP
    """
    from fedrec.experiment.resolve import resolve
    from fedrec.experiment.run import execute

    return execute(resolve(method, {"data": str(data), **options}), Path(out) if out is not None else None)


def open_run(path: str | Path) -> Result:
    """A finished run, with its metrics and its model."""
    from fedrec.experiment.open import opened

    return opened(Path(path))
