"""Items in the plane: features of users' encoders (FedDAE, Figure 3), tables of clients (FedCIA, Figure 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from fedrec.report.figures.canvas import INK, PALETTE, SOFT, sheet
from fedrec.report.text.csv_text import csv_text


class Mapped(Protocol):
    """One user's maps (:class:`fedrec.experiment.analyses.items.ItemMaps` fits)."""

    @property
    def user(self) -> str: ...
    @property
    def points(self) -> dict[str, Any]: ...  # [items, 2] by panel
    @property
    def interacted(self) -> Any: ...  # [items]
    @property
    def weights(self) -> tuple[float, float]: ...
    @property
    def apart(self) -> dict[str, float]: ...


class MappedClients(Protocol):
    """Several clients' maps (:class:`fedrec.experiment.analyses.items.ClientMaps` fits)."""

    @property
    def clients(self) -> list[str]: ...
    @property
    def points(self) -> dict[str, Any]: ...  # [clients, items, 2] by stage
    @property
    def distance(self) -> dict[str, float]: ...


def client_maps_figure(found: MappedClients, about: str) -> Figure:
    """A panel for each stage; every client has a colour, and every point is an item in its table."""
    figure = sheet(2.6 * len(found.points) + 0.4, 3.65, fitted=True)
    figure.suptitle(f"Item embeddings of clients\n{about}", x=0.01, ha="left", fontsize=10, color=INK)
    row = figure.subplots(1, len(found.points), squeeze=False)[0]
    for axes, (stage, points) in zip(row, found.points.items(), strict=True):
        for number, own in enumerate(points):  # the first are the largest: who lies below stays visible
            size, colour = 6 + 8 * (len(points) - 1 - number), PALETTE[number % len(PALETTE)]
            axes.scatter(*own.T, s=size, c=colour, label=f"client {found.clients[number]}", linewidths=0)
        _bare(axes, f"{stage} (distance {found.distance[stage]:.2f})")
    return _with_legend(figure, len(found.clients))


def client_maps_csv(found: MappedClients, items: Iterable[Any]) -> str:
    """Every point as CSV: stage, client, item, x, y."""
    rows = (
        [stage, client, item, f"{x:.5f}", f"{y:.5f}"]
        for stage, points in found.points.items()
        for client, own in zip(found.clients, points, strict=True)
        for item, (x, y) in zip(items, own, strict=True)
    )
    return csv_text(["stage", "client", "item", "x", "y"], rows)


def item_maps_figure(users: Sequence[Mapped], about: str) -> Figure:
    """A row for each user, a panel for each combination of encoders; items that the user has lie on top."""
    panels = list(users[0].points)
    figure = sheet(2.6 * len(panels) + 0.4, 2.75 * len(users) + 0.9, fitted=True)
    figure.suptitle(f"Item features of the encoders\n{about}", x=0.01, ha="left", fontsize=10, color=INK)
    for row, one in zip(figure.subplots(len(users), len(panels), squeeze=False), users, strict=True):
        own = np.asarray(one.interacted, bool)
        row[0].set_ylabel(f"user {one.user}, gate {one.weights[0]:.2f} / {one.weights[1]:.2f}", fontsize=9, color=INK)
        for axes, name in zip(row, panels, strict=True):
            points = np.asarray(one.points[name])
            for chosen, colour, label in ((~own, PALETTE[0], "other items"), (own, PALETTE[1], "the user's items")):
                axes.scatter(*points[chosen].T, s=4, c=colour, label=label, linewidths=0)
            _bare(axes, f"{name} (apart {one.apart[name]:.2f})")
    return _with_legend(figure, 2)


def _bare(axes: Any, title: str) -> None:
    """A panel without scales: places in a map mean nothing by themselves."""
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=9, color=INK)
    for spine in axes.spines.values():
        spine.set_color(SOFT)


def _with_legend(figure: Figure, entries: int) -> Figure:
    marks, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(marks, labels, loc="upper right", ncols=min(entries, 4), fontsize=9, frameon=False, markerscale=2)
    return figure


def item_maps_csv(users: Sequence[Mapped], items: Iterable[Any]) -> str:
    """Every point as CSV: user, view, item, whether the user has it, x, y."""
    rows = (
        [one.user, view, item, int(own), f"{x:.5f}", f"{y:.5f}"]
        for one in users
        for view, points in one.points.items()
        for item, own, (x, y) in zip(items, one.interacted, points, strict=True)
    )
    return csv_text(["user", "view", "item", "interacted", "x", "y"], rows)
