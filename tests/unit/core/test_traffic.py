"""Bytes that clients receive: the shared fields each, and their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec.core.messages import Array, Download, per_client, shared
from fedrec.core.wire import Form, download_bytes


@dataclass(frozen=True)
class Part(Download):
    rows: Array = per_client()


@dataclass(frozen=True)
class Received(Download):
    items: Array = shared()
    own: Array = per_client()
    part: Part | None = per_client()
    round: int = shared()


def received(part: Part | None) -> Received:
    return Received(np.zeros((3, 2), np.float32), np.zeros((4, 5), np.float32), part, 7)


def test_shared_fields_count_for_every_client_and_personal_ones_once() -> None:
    assert download_bytes(received(None), Form(), 4) == 4 * (3 * 2) * 4 + (4 * 5) * 4
    assert download_bytes(received(None), Form(precision="float16"), 4) == (4 * (3 * 2) + 4 * 5) * 2


def test_a_message_inside_a_message_counts() -> None:
    plain = download_bytes(received(None), Form(), 4)
    assert download_bytes(received(Part(np.zeros((4, 6), np.float32))), Form(), 4) == plain + 4 * 6 * 4
