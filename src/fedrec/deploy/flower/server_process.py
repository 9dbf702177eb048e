"""Runs on the server: a process takes them from Flower, and each is carried out by a process of its own.

python -m fedrec.deploy.flower.server_process SETTINGS.json    (started by the server itself)
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrec.deploy.flower.superlink import Settings
from fedrec.deploy.flower.tasks import claimed, leave_with, plain_log, refuse_foreign, waiting_tasks

log = logging.getLogger("fedrec.deploy")

KIND = "flwr-serverapp"

CarryOut = Callable[[Path, Any, Path], None]
"""What is done with a run's folder, over Flower's grid, by the server of a folder."""


def take_runs(path: Path, parent: int) -> None:
    """A process for each run that Flower has, one after another, until the parent is gone."""
    settings = Settings.read(path)
    secret = Path(settings.secret).read_bytes()
    for token in waiting_tasks(settings.link, KIND, secret, lambda: os.getppid() == parent):
        child = subprocess.Popen([sys.executable, *_own_module(), str(path), "--run"], stdin=subprocess.PIPE)
        assert child.stdin is not None
        child.stdin.write(token.encode())  # not an argument: those can be read by everybody on the machine
        child.stdin.close()
        child.wait()  # one run at a time: nodes have one processor, and the next run waits in Flower's queue


def carry_out_run(path: Path, token: str, carry_out: CarryOut) -> None:
    """One run: check what was shipped, then do this version's own work."""
    from flwr.app import RecordDict
    from flwr.common.config import get_fused_config_from_fab
    from flwr.common.constant import SubStatus
    from flwr.common.serde import context_from_proto, context_to_proto, fab_from_proto, run_from_proto
    from flwr.proto.runtime_pb2 import PullTaskInputRequest, PushTaskOutputRequest
    from flwr.supercore.task_identity import TaskIdentity
    from flwr.superlink.grid.http_grid import HttpGrid

    settings = Settings.read(path)
    link = settings.link
    grid = HttpGrid(link.address, link.ca is None, link.named["root_certificates"], token=token)
    client = grid._runtime_client
    status, details, context = SubStatus.FAILED, "", None
    with claimed(client, lambda: signal.raise_signal(signal.SIGINT)):  # the run was stopped
        try:
            given = client.PullTaskInput(PullTaskInputRequest())
            TaskIdentity.task_id, TaskIdentity.run_id = given.task_id, given.run.run_id
            TaskIdentity.node_id = given.context.node_id
            context, run, fab = context_from_proto(given.context), run_from_proto(given.run), fab_from_proto(given.fab)
            refuse_foreign(fab.content)
            grid.set_run(run)
            folder = Path(str(get_fused_config_from_fab(fab.content, run)["folder"]))
            if folder.stat().st_uid != os.getuid():
                raise PermissionError(f"{folder} belongs to another user of this machine")
            carry_out(folder, grid, Path(settings.home))
            status = SubStatus.COMPLETED
        except Exception as problem:
            details = f"{type(problem).__name__}: {problem}"
            log.error("a run ended: %s", details)
        finally:
            if context is not None:
                context.state = RecordDict()
            grid._retry_invoker.max_tries = 3
            client.PushTaskOutput(
                PushTaskOutputRequest(
                    context=None if context is None else context_to_proto(context), sub_status=status, details=details
                )
            )
            grid.close()


def serve_run(folder: Path, grid: Any, home: Path) -> None:
    """Carry out the run in a folder, with the nodes that the server in ``home`` admits."""
    from fedrec.deploy.admission import Admission
    from fedrec.deploy.flower.grid import GridExchange
    from fedrec.deploy.messages.letters import Meet
    from fedrec.deploy.server.pulse import beating
    from fedrec.deploy.server.serve import serve

    admission = Admission(home) if (home / "nodes.json").exists() else None

    def connect(word: Meet, poll: float) -> Any:
        return GridExchange(grid, word, poll=poll, admission=admission)

    with beating(folder, stop=lambda: signal.raise_signal(signal.SIGINT)):
        serve(folder, connect)


def _own_module() -> list[str]:
    """How this module was started, so that a run is carried out by the same code."""
    spec = sys.modules["__main__"].__spec__
    return ["-m", spec.name] if spec is not None else [sys.argv[0]]


def main(carry_out: CarryOut = serve_run) -> None:
    plain_log()
    leave_with(os.getppid())
    path = Path(sys.argv[1])
    if "--run" in sys.argv[2:]:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
        carry_out_run(path, sys.stdin.read(), carry_out)
    else:
        take_runs(path, os.getppid())


if __name__ == "__main__":
    main()
