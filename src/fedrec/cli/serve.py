"""``fedrec serve``: recommendations over HTTP, out of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", help="Port to listen on; 0 for any free one.")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="A file with a token that every request must bring (Bearer).")
]
Silent = Annotated[bool, typer.Option("--quiet", help="Print no line per request.")]


def serve(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run; its data is not needed.")],
    host: Host = "127.0.0.1",
    port: Port = 8080,
    token_file: TokenFile = None,
    quiet: Silent = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Switch to finished updates of the run that lie beside its folder.")
    ] = False,
) -> None:
    """Answer over HTTP until interrupted; a newer model in the folder takes over without a pause."""
    from fedrec.serve.sources import RunSource
    from fedrec.serve.start import Place
    from fedrec.serve.start import serve as start

    start(RunSource(run, follow), Place(host, port, token_file, quiet), typer.echo)
