"""A node: Flower's part of it as a child, and the work on messages here.

    python -m fedrec.deploy.flower.node_process NODE.toml

One process answers one message after another, so that imports are paid once. It ends with Flower's part, with the
same status. What a run ships is never installed: the node works with the fedrec it was installed with.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrec.deploy.flower.tasks import (
    ForeignApplication,
    Link,
    claimed,
    leave_with,
    new_secret,
    plain_log,
    refuse_foreign,
    waiting_tasks,
)

log = logging.getLogger("fedrec.deploy")

KIND = "flwr-clientapp"

Handle = Callable[[Any], Any]
"""From one envelope to another (:mod:`fedrec.deploy.messages.envelope`)."""
Around = Callable[[dict[str, Any], Handle], Handle]
"""Something between Flower and the node's own work, for tests and measurements."""


def main(path: Path, around: Around | None = None) -> int:
    """Run a node until Flower's part of it ends; its exit status."""
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    folder = Path(str(config["folder"]))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = new_secret(folder)
    member = subprocess.Popen([*config["supernode"], "--superexec-auth-secret-file", str(secret)])
    leave_with(os.getppid(), member.kill)
    try:
        from fedrec.deploy.node.share import prepare
        from fedrec.deploy.node.worker import Worker, options_of
        from fedrec.deploy.processes import apart

        worker = Worker(options_of(config), apart(prepare))
        handle = worker.handle if around is None else around(config, worker.handle)
        link = Link(f"127.0.0.1:{config['port']}")
        one_at_a_time = threading.Lock()

        def work(token: str) -> None:
            def alone(plain: Any) -> Any:
                with one_at_a_time:
                    return handle(plain)

            if answer_message(link, token, alone) == "meet":
                with one_at_a_time:
                    worker.warm_up()

        for token in waiting_tasks(link, KIND, secret.read_bytes(), lambda: member.poll() is None):
            # a thread each: Flower may wait for hours for a message whose run has ended
            threading.Thread(target=work, args=(token,), daemon=True).start()
    finally:
        if member.poll() is None:
            member.terminate()
    return member.wait()


def answer_message(link: Link, token: str, handle: Handle) -> str:
    """Do one task: pull the message, answer it, push the answer. Returns the message's kind."""
    from flwr.app import Message
    from flwr.app.error import Error
    from flwr.common.constant import ErrorCode, SubStatus
    from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor
    from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

    from fedrec.deploy.flower.records import from_records, to_records

    client = link.runtime(RuntimeTokenHttpInterceptor(token))
    kind, status, details, context = "", SubStatus.FAILED, "", None
    with claimed(client):
        try:
            message, context, _, fab = pull_task_input(client)
            try:
                refuse_foreign(fab.content)
                plain = from_records(message.content)
                kind = str(plain[0].get("kind", ""))
                reply = Message(to_records(handle(plain)), reply_to=message)
                status = SubStatus.COMPLETED
            except ForeignApplication as problem:
                details = str(problem)
                log.warning("refused: %s", details)
                reply = Message(Error(code=ErrorCode.LOAD_CLIENT_APP_EXCEPTION, reason=details), reply_to=message)
            except Exception as problem:  # whatever a message does, the node goes on
                details = f"{type(problem).__name__} on the node"
                log.exception("a message could not be answered")
                error = Error(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason=details)
                reply = Message(error, reply_to=message)
            push_message(client, reply, context)
        except Exception as problem:  # Flower's part went away, or the run was stopped
            details = f"{type(problem).__name__}: {problem}"
            log.warning("a task could not be finished: %s", details)
        finally:
            push_task_output(client, context, status, details)
            client.close()
    return kind


def start(around: Around | None = None) -> None:
    plain_log()
    sys.exit(main(Path(sys.argv[1]), around))


if __name__ == "__main__":
    start()
