"""A static page that recommends in the visitor's own browser, with the shared part of a linear model.

index.html holds everything: the model's numbers, the titles, the script. Its policy forbids every request, so what a
visitor chooses cannot leave the page. It is opened from a server, or from a disk.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.experiment.open import opened
from fedrec.experiment.recommend import Recommender
from fedrec.maths.thin_filter import LowPass
from fedrec.methods.fedease import FedEase
from fedrec.methods.fedspectral import FedSpectral
from fedrec.report.page.parts import data_block
from fedrec.report.page.render import head, page_style
from fedrec.runs.atomic import keep_text, writing_to
from fedrec.serve.assets_of import own_asset
from fedrec.simulate.clients import Clients

STRONGEST = 64
"""Weights that an item of fedease keeps, unless said otherwise."""
LARGEST = 64 << 20
"""Bytes of a page that a phone still opens."""
MADE = "Made by fedrec."
"""How a page says that it was made here."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    file: Path
    size: int
    says: str
    """What the page computes, in a line."""


def export_page(run: Path, folder: Path, strongest: int | None = None, title: str = "") -> Exported:
    """Write ``folder/index.html``; ``strongest``: how many weights an item of fedease keeps."""
    if strongest is not None and strongest < 1:
        raise BadInput(f"{strongest} weights per item are too few; give 1 or more")
    _refuse_others(folder / "index.html")
    result = opened(run)
    known = result.recommender
    model, says = page_model(known, strongest)
    data = result.json["data"]
    about = f"{result.json['method']} learnt from {data['users']} users of {data['name']}: {says}"
    content = {
        "items": known.item_ids.tolist(),
        "titles": None if known.titles is None else [str(text) for text in known.titles],
        "model": model,
    }
    text = html(title or "What would you like next?", about, content)
    size = len(text.encode())
    if size > LARGEST:
        raise BadInput(
            f"the page would have {size >> 20} MiB; a page of at most {LARGEST >> 20} opens on a phone: "
            "export a run with fewer items, a smaller k, or fewer weights (--strongest)"
        )
    with writing_to(folder, "--page"):
        folder.mkdir(parents=True, exist_ok=True)
        keep_text(folder / "index.html", text)
    return Exported(folder / "index.html", size, says)


def _refuse_others(page: Path) -> None:
    """A page that was not made here is somebody's own."""
    if page.is_file():
        with page.open("rb") as file:
            file.seek(max(0, page.stat().st_size - LARGEST))
            if MADE.encode() not in file.read():
                raise BadInput(f"{page} is there already and is no page of fedrec; give another folder with --page")


def page_model(known: Recommender, strongest: int | None = None) -> tuple[dict[str, Any], str]:
    """The shared part of a linear model as plain values for the script, and what it is."""
    if isinstance(known.model, Clients) and isinstance(known.model.method, FedSpectral | FedEase):
        method, world = known.model.method, known.model.people.world
        download = known.model.outgoing.for_new(known.model.server, world)
        if isinstance(method, FedSpectral):
            if strongest is not None:
                raise BadInput("a page of fedspectral holds all that its clients received: leave --strongest out")
            return _spectral(method, download), f"{len(download.values)} directions, all that its clients received"
        kept = min(STRONGEST if strongest is None else strongest, world.n_items)
        sources, values = cut(download.weights, kept)
        made = {"kind": "weights", "k": kept, "sources": _packed(sources, "<i4"), "values": _packed(values)}
        return made, f"the {kept} strongest of {world.n_items} weights of each item"
    raise BadInput("a page holds the shared part of a linear model; give a run of fedspectral or fedease")


def cut(weights: NDArray[np.float32], strongest: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The strongest weights into each item ``[m, strongest]``: which items they come from, ascending, and how much."""
    size = np.abs(weights)
    order = np.argsort(-size, axis=0, kind="stable")[:strongest]  # [strongest, m]: rows are where weights come from
    order = np.sort(order, axis=0).T
    return order.astype(np.int32), np.take_along_axis(weights.T, order, axis=1)


def _spectral(method: FedSpectral, download: Any) -> dict[str, Any]:
    """Scores as ``((sum of scale * vectors over the history) * response) vectors' * back``."""
    settings = method.settings
    if settings.filter == "ease":
        thin = method.ease(download)
        scale, response = (np.ones(size, np.float32) for size in thin.factors.shape)
        parts = LowPass(thin.factors, response, scale, thin.into)
    else:
        parts = method.lowpass(download)
    numbers = {name: _packed(part) for name, part in vars(parts).items()}
    return {"kind": "spectral", "k": parts.vectors.shape[1], **numbers}


def _packed(values: NDArray[Any], kind: str = "<f4") -> str:
    """Numbers as bytes, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def html(title: str, about: str, content: dict[str, Any]) -> str:
    style = page_style() + own_asset("private.css")
    script = own_asset("private.js")
    return f"""{head(title, style, script)}<body>
<a class="skip" href="#search">Skip to the search</a>
<header class="top private">
<button class="theme" type="button" hidden>Dark</button>
<h1>{escape(title)}</h1>
<p class="lead">Computed in this page. Nothing you choose leaves it: its policy forbids every request.</p>
</header>
<main class="private">
<section aria-labelledby="choose"><h2 id="choose">What do you like?</h2>
<label for="search">Search a title</label>
<input id="search" type="search" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false"
 aria-controls="found" aria-autocomplete="list">
<ul id="found" role="listbox" aria-label="Found titles" hidden></ul>
<ul id="chosen" aria-label="Chosen"></ul>
<p><button id="clear" class="theme" type="button" hidden>Start over</button></p>
</section>
<section aria-labelledby="next"><h2 id="next">You might like</h2>
<ol id="list" aria-live="polite"></ol>
<p id="empty" class="soft">Choose one title or more; recommendations appear here.</p>
</section>
</main>
<footer>{escape(about)}. {MADE}</footer>
{data_block(content)}
<script>{script}</script>
</body>
</html>
"""
