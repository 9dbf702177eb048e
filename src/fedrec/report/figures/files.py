"""Figures as files: PNG for the screen, SVG and PDF for a paper. The same figure gives the same bytes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrec.errors import BadInput
from fedrec.runs.atomic import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[str, dict[str, Any]] = {
    ".png": {"format": "png", "dpi": 160, "metadata": {"Software": None}},
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": "fedrec"}},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None, "Producer": None, "Creator": "fedrec"}},
}
_FONTS: dict[Any, Any] = {"svg.hashsalt": "fedrec", "svg.fonttype": "none", "pdf.fonttype": 42}
"""Text stays text, and TrueType in a PDF, as publishers ask for."""


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the form that the file's ending names, atomically."""
    if path.suffix not in KINDS:
        raise BadInput(f"a figure cannot be written as {path.name!r}; end the name in {', '.join(KINDS)}")
    replace_file(path, partial(_save, figure, KINDS[path.suffix]))


def save_all(figure: Figure | None, base: Path) -> list[Path]:
    """``base.png``, ``.svg`` and ``.pdf``; without a figure, those of an earlier time are removed."""
    paths = [base.with_name(base.name + end) for end in KINDS]
    for path in paths:
        if figure is None:
            path.unlink(missing_ok=True)
        else:
            save(figure, path)
    return [] if figure is None else paths


def _save(figure: Figure, how: dict[str, Any], path: Path) -> None:
    from matplotlib import rc_context

    with rc_context(_FONTS):
        figure.savefig(path, facecolor="white", **how)
