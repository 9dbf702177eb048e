"""A page on this machine that follows runs as they go: server-sent events out of run folders."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from fedrec.deploy.ports import bound
from fedrec.deploy.server.pulse import duration
from fedrec.evaluation.headline import SHOWN
from fedrec.report.model.series import Series
from fedrec.report.page import figures
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, Tile, paragraphs, tiles
from fedrec.report.page.render import Page, render
from fedrec.serve import http
from fedrec.serve.assets_of import own_asset
from fedrec.serve.counts import Counts
from fedrec.serve.door import Door, error_json
from fedrec.serve.following import Followed, Follower, shown

EVERY = 1.0
"""Seconds between two looks."""
PLACES = ("state", "curves", "missing", "runs")
"""Parts of the page that change."""


def live_app(follower: Follower, ending: threading.Event, every: float = EVERY) -> ASGIApp:
    """The whole application; its streams go on until ``ending``."""

    async def page(request: Request) -> Response:
        body = "".join(f'<div id="live-{place}"></div>' for place in PLACES)
        back = '<p><a href="/">All runs</a></p>' if not follower.one and "run" in request.query_params else ""
        note = '<p class="small soft" id="live-link" role="status">connecting</p>'
        lead = shown(str(follower.path / request.query_params.get("run", "")))
        made = Page("fedrec: runs as they go", lead, [Section("live", "Now", back + note + body)])
        return HTMLResponse(render(made, own_asset("live.js"), "'self'"))

    async def events(request: Request) -> Response:
        name = request.query_params.get("run")
        if name is not None and await asyncio.to_thread(follower.run, name) is None:
            return Response(error_json(f"no run {name[:80]!r} here"), 404, media_type="application/json")
        kind = {"cache-control": "no-store"}
        return StreamingResponse(_events(follower, name, ending, every), media_type="text/event-stream", headers=kind)

    app = Starlette(routes=[Route("/", page), Route("/events", events)])
    return Door(app, Counts())


async def _events(follower: Follower, name: str | None, ending: threading.Event, every: float) -> AsyncIterator[bytes]:
    said: dict[str, str] = {}
    while not ending.is_set():
        now = await asyncio.to_thread(parts_of, follower, name)
        changed = {place: text for place, text in now.items() if said.get(place) != text}
        said = now
        yield f"data: {json.dumps(changed)}\n\n".encode()  # also where nothing changed: a sign of life
        await asyncio.sleep(every)


def parts_of(follower: Follower, name: str | None = None) -> dict[str, str]:
    """What the page shows, as HTML by place."""
    runs = follower.runs()
    if follower.one or name is not None:
        chosen = next((run for run in runs if follower.one or follower.name(run) == name), None)
        return gone_parts() if chosen is None else run_parts(chosen)
    return {**dict.fromkeys(PLACES, ""), **list_parts(follower, runs)}


def gone_parts() -> dict[str, str]:
    """A run of a list whose folder has been taken away while its page was open."""
    about = "no run of this name is here any more; if it comes back, it is shown again"
    return {**dict.fromkeys(PLACES, ""), "state": tiles([Tile("state", "it is gone", about)])}


def run_parts(run: Followed) -> dict[str, str]:
    """One run: where it stands, its curve, who was missing and why."""
    found = [Tile("state", run.state().partition(" (")[0].partition(";")[0], _about(run))]
    found.append(Tile("round", f"{run.done} of {run.rounds}", _left(run)))
    if run.records:
        last = run.records[-1]
        found.append(Tile("took part", str(last["participants"]), "clients in the last round"))
        up, down = (f"{last['bytes'].get(way, math.nan) / 1024:.1f} KiB" for way in ("upload", "download"))
        found.append(Tile("up", up, f"{down} down, per client and round"))
        parts = ", ".join(f"{part} {seconds:.2g}" for part, seconds in last["seconds"].items())
        found.append(Tile("seconds a round", f"{run.seconds_a_round:.2g}", f"last: {parts}"))
        if last["loss"] == last["loss"]:
            found.append(Tile("loss", f"{last['loss']:.4g}", "of the last round"))
    spent = (run.result or {}).get("privacy")
    privacy = paragraphs([f"Privacy: {spent}"]) if spent else ""
    curve = ""
    metric = next((m for m in SHOWN if any(m in (r.get("valid") or {}) for r in run.records)), None)
    if metric is not None:
        label = run.settings.method if run.settings is not None else ""
        curve = figures.curves([Series(label, label, "federated", (run.as_run(metric),))], metric)
    return {"state": tiles(found) + privacy, "curves": curve, "missing": _missing(run), "runs": ""}


def _about(run: Followed) -> str:
    words = run.state()
    where = f"{run.settings.method} on {run.settings.data}" if run.settings is not None else ""
    return where if words in ("running", "finished") else f"{where}: {words}"


def _left(run: Followed) -> str:
    if run.result is not None:
        return f"round {run.result['selected_round']} selected"
    return "time left not known yet" if run.left is None else f"at most {duration(run.left)} left"


def _missing(run: Followed) -> str:
    """Who did not answer, and why, the last rounds first."""
    rows = [
        ("", [Td(str(record["round"])), Td(escape(str(who)), cls="left")])
        for record in reversed(run.records)
        for who in record["missing"]
    ]
    if not rows:
        return ""
    heads = [Th("round", number=False), Th("who, and why", number=False, cls="left")]
    often = "once" if len(rows) == 1 else f"{len(rows)} times"
    return HtmlTable(f"Missing: {often}", heads, rows[:200]).html()


def list_parts(follower: Follower, runs: list[Followed]) -> dict[str, str]:
    """A sweep, a comparison or a leaderboard: how far each run is."""
    whole = sum(run.share for run in runs) / max(1, len(runs))
    found = [
        Tile("finished", f"{sum(run.result is not None for run in runs)} of {len(runs)}", "runs that have begun here"),
        Tile("of all rounds", f"{100 * whole:.0f} %", "each run counted alike"),
    ]
    left = [run.left for run in runs if run.left is not None and run.state() == "running"]
    if left:
        found.append(Tile("left", duration(max(left)), "at most, of those that run now"))
    heads = [Th("run", number=False), Th("state", number=False, cls="left"), Th("rounds"), Th("seconds a round")]
    rows = [
        (
            "",
            [
                Td(f'<a href="/?run={quote(follower.name(run))}">{escape(follower.name(run))}</a>'),
                Td(escape(run.state()), cls="left"),
                Td(f"{run.done} of {run.rounds}", run.share),
                Td(f"{run.seconds_a_round:.2g}", run.seconds_a_round),
            ],
        )
        for run in runs
    ]
    return {"state": tiles(found), "runs": HtmlTable(f"{len(runs)} runs", heads, rows).html()}


@contextmanager
def watched(path: Path, port: int = 0, every: float = EVERY) -> Iterator[str]:
    """A page that follows a run of this process, which may not have begun; its address. It lasts as long as the block,
    and long enough to show the end."""
    listening, ending = bound("127.0.0.1", port), threading.Event()
    server = http.Server(live_app(Follower(path, waits=True), ending, every), ending)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield http.address(listening)
    finally:
        if server.server_state.connections:
            time.sleep(2 * every)
        server.end()
        thread.join(10)
