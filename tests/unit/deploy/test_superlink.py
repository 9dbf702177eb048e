"""Flower's server as this project starts it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from fedrec.deploy.flower.superlink import prompt, wait_for_the_database


async def asked(reader: Any, writer: Any, head: bytes = b"", body: bytes = b"") -> bytes:
    """The start of what a request is answered with."""
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n" + body)
    answer: bytes = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    return answer[:12]


async def end_of(reader: Any) -> bytes:
    """What is left to read until the connection ends."""
    try:
        left: bytes = await asyncio.wait_for(reader.read(), 5)
    except ConnectionError:
        return b""
    return left


def served(http: Any, tried: Callable[[tuple[str, int]], Any]) -> Any:
    """What comes of trying something against a small server."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def both() -> Any:
        server = uvicorn.Server(uvicorn.Config(app, port=0, http=http, ws="none", lifespan="off", log_level="error"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            return await tried(server.servers[0].sockets[0].getsockname())
        finally:
            server.should_exit = True
            await serving

    return asyncio.run(both())


@pytest.mark.parametrize("said", [b"", b"POST /v1/fleet/pull-messages HTTP/1.1\r\nA: b\r\n"])
def test_who_connects_and_asks_for_nothing_is_cut_off(said: bytes) -> None:
    """Some thousand such connections would keep all nodes out."""

    async def tried(place: tuple[str, int]) -> tuple[bytes, bytes, bytes]:
        silent, to_silent = await asyncio.open_connection(*place)
        to_silent.write(said)
        node, to_node = await asyncio.open_connection(*place)
        first = await asked(node, to_node)
        await asyncio.sleep(0.6)
        again = await asked(node, to_node)  # who has asked for something may stay
        to_node.close()
        return first, again, await end_of(silent)

    assert served(prompt(0.3), tried) == (b"HTTP/1.1 200", b"HTTP/1.1 200", b"")


def test_a_head_without_end_is_cut_off() -> None:
    """Nobody is asked for a key before the head is whole: a stranger's hundred megabytes were kept until then."""

    async def tried(place: tuple[str, int]) -> tuple[bytes, bytes, bytes]:
        node, to_node = await asyncio.open_connection(*place)
        first = await asked(node, to_node, b"A: " + b"b" * 40_000 + b"\r\n")
        body = b"c" * 1_000_000
        again = await asked(node, to_node, b"Content-Length: 1000000\r\n", body)
        to_node.write(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000)
        return first, again, await end_of(node)

    assert served(prompt(9.0), tried) == (b"HTTP/1.1 200", b"HTTP/1.1 200", b"")


def test_calls_wait_a_minute_for_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.supercore import sql_mixin

    flower: Any = sql_mixin
    monkeypatch.setattr(flower, "SQLITE_PRAGMAS", flower.SQLITE_PRAGMAS)  # put back afterwards
    wait_for_the_database()
    connection = sqlite3.connect(tmp_path / "state.db")
    flower._set_sqlite_pragmas(connection, None)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",), "the others stay"
