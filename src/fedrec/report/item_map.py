"""Figure 3 of FedDAE: item features of a user's encoders in the plane, own items in red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PANELS = ("global", "local", "average", "weighted")


def item_map_figure(
    maps: dict[str, NDArray[np.floating]], interacted: NDArray[np.bool_], path: Path | None = None
) -> Any:
    """One panel for each map ``[items, 2]``; items that the user has interacted with on top, in red."""
    from matplotlib.figure import Figure

    shown = [name for name in PANELS if name in maps] or list(maps)
    figure = Figure(figsize=(3.2 * len(shown), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        points = np.asarray(maps[name])
        for chosen, colour, label in (
            (~interacted, "tab:blue", "not interacted"),
            (interacted, "tab:red", "interacted"),
        ):
            axes.scatter(*points[chosen].T, s=4, c=colour, label=label, linewidths=0)
        axes.set(title=name, xticks=[], yticks=[])
    figure.axes[0].legend(loc="lower left", fontsize="x-small")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
