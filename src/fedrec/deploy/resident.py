"""Handing a message to the worker that stays; starting it where there is none. Imports stay lean."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from fedrec.runs.atomic import private_folder, private_opener

START_SECONDS = 60.0


def ask_worker(config: dict[str, Any], plain: Any, parent: int | None = None) -> Any:
    """The worker's reply; where no worker can be had, the work is done here."""
    parent = os.getppid() if parent is None else parent
    try:
        connection = _connect(config, parent)
        with connection:
            send(connection, plain)
            return receive(connection)
    except (OSError, EOFError, ValueError, TimeoutError):  # it died, or could not be started
        from fedrec.deploy.worker import Worker, options_of

        return Worker(options_of(config)).handle(plain)


def send(connection: Connection, plain: Any) -> None:
    """An envelope as frames: the head with the names of the blocks, then the blocks."""
    head, blocks = plain
    connection.send_bytes(json.dumps([head, list(blocks)]).encode())
    for data in blocks.values():
        connection.send_bytes(data)


def receive(connection: Connection) -> Any:
    head, names = json.loads(connection.recv_bytes())
    return head, {name: connection.recv_bytes() for name in names}


def _connect(config: dict[str, Any], parent: int) -> Connection:
    folder = Path(str(config["folder"]))
    secret, address = _secret(folder), _address(folder, config, parent)
    if os.path.exists(address):
        try:
            return Client(address, family="AF_UNIX", authkey=secret)
        except ConnectionRefusedError:  # left behind by one that was killed
            os.unlink(address)
    with open(folder / "worker.log", "ab", opener=private_opener) as output:
        member = subprocess.Popen(
            [sys.executable, "-m", "fedrec.deploy.worker"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=0o077,
        )
    given = {"config": config, "address": address, "secret": secret.hex(), "parent": parent}
    assert member.stdin is not None
    member.stdin.write(json.dumps(given).encode())
    member.stdin.close()
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and member.poll() is None:
        try:
            return Client(address, family="AF_UNIX", authkey=secret)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
    raise TimeoutError("the worker did not come up")


def _secret(folder: Path) -> bytes:
    """A key that only this node's user can read."""
    path = folder / ".worker-key"
    private_folder(folder)
    if not path.is_file():
        temporary = path.with_name(f".worker-key.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(secrets.token_bytes(32))
        os.replace(temporary, path)
    return path.read_bytes()


def _address(folder: Path, config: dict[str, Any], parent: int) -> str:
    """A socket of this node, this configuration and this SuperNode; short, as sockets want it."""
    text = json.dumps([str(folder.resolve()), config, parent], sort_keys=True)
    place = Path(tempfile.gettempdir()) / f"fedrec-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    about = place.lstat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077 or not place.is_dir():
        raise OSError(f"{place} can be used by others")
    return str(place / hashlib.blake2b(text.encode(), digest_size=12).hexdigest())
