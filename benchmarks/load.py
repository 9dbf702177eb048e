"""Many connections that ask over real sockets: a small client, so that its own cost stays small."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Load:
    """What came back."""

    seconds: float = 0.0
    waited: list[float] = field(default_factory=list)
    """Seconds to each answer."""
    statuses: dict[int, int] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.waited) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share was answered."""
        return 1000 * float(np.percentile(self.waited, 100 * share))


def many_files(wanted: int = 8_192) -> None:
    """Let this process have so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


async def ask(
    host: str, port: int, path_of: Callable[[int], str], connections: int, each: int, keep: bool = False
) -> Load:
    """``each`` requests after another on every connection, all connections at once; ``path_of`` their numbers."""
    load = Load()
    start = asyncio.Event()

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        ready.append(number)
        await start.wait()
        for turn in range(each):
            began = time.perf_counter()
            path = path_of(number * each + turn)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(size)
            load.waited.append(time.perf_counter() - began)
            status = int(head[9:12])
            load.statuses[status] = load.statuses.get(status, 0) + 1
            if keep:
                load.bodies.append(body)
        writer.close()

    ready: list[int] = []
    tasks = [asyncio.create_task(one(number)) for number in range(connections)]
    while len(ready) < connections and not any(task.done() for task in tasks):
        await asyncio.sleep(0.01)
    began = time.perf_counter()
    start.set()
    await asyncio.gather(*tasks)
    load.seconds = time.perf_counter() - began
    return load
