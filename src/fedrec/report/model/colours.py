"""One colour and stroke for each method, the same in pages and in figures.

Chosen for contrast on paper and on a dark screen, and apart with every common kind of colour blindness.
"""

from __future__ import annotations

Shades = tuple[tuple[str, ...], str]
"""Colours of what is compared, and the grey of controls."""

LIGHT: Shades = ("#0072b2", "#c04d00", "#007a5a", "#a8497f", "#6f5bd0", "#8a6400", "#1b1e23"), "#6b727d"
DARK: Shades = ("#56b4e9", "#f0883e", "#2fc79a", "#e596c2", "#ac9df5", "#e0b53f", "#e7eaef"), "#98a1ae"
COUNT = len(LIGHT[0])
"""How many colours there are before strokes change."""
STROKES = 3


def place(number: int) -> tuple[int, int]:
    """Colour and stroke of the method at this place among those that are compared.

    >>> place(0), place(8)
    ((0, 0), (1, 1))
    """
    return number % COUNT, number // COUNT % STROKES


def on_paper(number: int, control: bool) -> str:
    """The colour on a light ground."""
    return LIGHT[1] if control else LIGHT[0][place(number)[0]]
