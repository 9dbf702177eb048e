"""Training chunks of clients with torch: on the CPU side by side, on another device one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from fedrec.data.ragged import Int64
from fedrec.threads import thread_count


def over_chunks(train: Callable[[Int64], Any], chunks: Iterable[Int64], device: str, threads: int | None) -> None:
    """Call ``train`` with every chunk of clients; on the CPU each thread has torch for itself alone."""
    if device != "cpu":
        for clients in chunks:
            train(clients)
        return
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(thread_count(threads), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for done in [pool.submit(train, clients) for clients in chunks]:
                done.result()
    finally:
        torch.set_num_threads(before)
