"""Scoring models."""

from __future__ import annotations

from typing import Any

from fedrec.errors import unknown

NAMES = ("mf", "ncf", "affine", "sasrec")


def find(name: str) -> Any:
    """A backbone by its name."""
    if name in ("mf", "affine"):
        from fedrec.backbones.mf import Affine, MatrixFactorisation

        return MatrixFactorisation() if name == "mf" else Affine()
    if name == "ncf":
        from fedrec.backbones.ncf import NeuralCollaborativeFiltering

        return NeuralCollaborativeFiltering()
    if name == "sasrec":
        from fedrec.backbones.sasrec import SasRec

        return SasRec()
    raise unknown("backbone", name, NAMES)
