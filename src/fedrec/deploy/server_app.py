"""What Flower starts on the server for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    from fedrec.deploy.grid import GridExchange
    from fedrec.deploy.letters import Meet
    from fedrec.deploy.serve import serve

    def connect(word: Meet, poll: float) -> Any:
        return GridExchange(grid, word, poll=poll)

    serve(Path(str(context.run_config["folder"])), connect)
