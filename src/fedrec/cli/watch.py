"""``fedrec watch``: a page that follows runs as they go."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer


def watch(
    path: Annotated[Path, typer.Argument(help="A run's folder, or a folder with runs below it.")],
    port: Annotated[int, typer.Option("--port", help="Port on this machine; 0 for any free one.")] = 8090,
) -> None:
    """Show runs as they go, on a web page of this machine, until interrupted; nothing is written into their folders."""
    from fedrec.deploy.ports import bound
    from fedrec.serve import http
    from fedrec.serve.following import Follower
    from fedrec.serve.live import live_app

    ending = threading.Event()
    app = live_app(Follower(path), ending)
    listening = bound("127.0.0.1", port)
    typer.echo(f"{http.address(listening)} follows {path}; Ctrl-C ends the page, not the runs")
    http.serve(app, listening, ending)
