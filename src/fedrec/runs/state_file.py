"""State as a safetensors file that carries its own checksum; a run's folder and a node's folder use the same.

Beside the arrays, the header's metadata has exactly these entries:

format      ``fedrec.state/2``
structure   how the arrays make up the value (:mod:`fedrec.core.state`)
about       a JSON object of plain values
blake2b     checksum of the whole file with zeros in place of these 64 digits: BLAKE2b-256 of the BLAKE2b-256 of each
            16 MiB, so that several threads can work on a large file

The checksum lies in the file, not beside it, so that a kill can never leave a file with another file's checksum. It is
checked before anything else is looked at. Files of 0.1.0 have no format and no checksum; they are read.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fedrec.core.state import BadState, Expected, Flat, check_forms, flatten, parse_json, unflatten
from fedrec.errors import BadInput
from fedrec.memory import MIB, available_mb
from fedrec.runs.array_file import write_arrays
from fedrec.runs.atomic import keep_file
from fedrec.runs.sealed import DIGITS, KEY, ZEROS, damaged, digest, text_of, warn_unsealed

FORMAT = "fedrec.state/2"
LARGEST_HEADER = 100_000_000  # as safetensors has it
PIECE = 1 << 24
THREADS = min(4, os.cpu_count() or 1)

_NEW = {"format", "structure", "about", KEY}
_OLD = ({"structure", "about"}, {"structure"}, {"structure", "digest"})


def save_state(path: Path, value: Any, about: dict[str, Any] | None = None, *, private: bool = False) -> None:
    """Write a value and its checksum, atomically."""
    arrays, structure = flatten(value)
    metadata = {"format": FORMAT, "structure": structure, "about": json.dumps(about or {}), KEY: ZEROS}

    def write(temporary: Path) -> None:
        write_arrays(temporary, arrays, metadata)
        _seal(temporary)

    keep_file(path, write, private=private)


def load_state(
    path: Path, expected: Expected = Expected(), advice: str = "", *, checked: bool = False
) -> tuple[Any, dict[str, Any]]:
    """The value in a file, if it is whole and what is expected, and what was said about it.

    ``checked``: a manifest has vouched for the file, so that it is not hashed again.
    """
    try:
        metadata = _checked_metadata(path, checked)
        value = unflatten(_arrays(path), metadata["structure"], expected)
        if expected.forms:
            check_forms(value, expected.forms)
        about = parse_json(metadata.get("about", "{}"))
        if not isinstance(about, dict):
            raise BadState("what it says about itself is not an object")
    except BadState as problem:
        raise damaged(path, str(problem), advice) from None
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror or problem}") from None
    return value, {**about, **({"digest": metadata["digest"]} if "digest" in metadata else {})}


def has_checksum(path: Path) -> bool:
    """Whether this is a file of the present format, which has a checksum, be it damaged or not."""
    try:
        with open(path, "rb") as file:
            return f'"format":"{FORMAT}"'.encode() in _header(file)
    except (OSError, BadState):
        return False


def _arrays(path: Path) -> Flat:
    from safetensors import SafetensorError, safe_open

    found = path.stat()
    taken = 512 * getattr(found, "st_blocks", found.st_size)
    if taken < found.st_size and found.st_size > available_mb() * MIB:  # no state is written so; memory it would take
        raise BadState(f"it is full of holes, and its {found.st_size >> 20} MiB are more than the memory that is free")
    try:
        with safe_open(path, framework="numpy") as file:
            return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, TypeError, ValueError, AttributeError) as problem:  # a number format numpy has not, too
        raise BadState(f"it is not a safetensors file ({str(problem)[:120]})") from None


def _seal(path: Path) -> None:
    """Put the checksum where the zeros are."""
    with open(path, "rb+") as file:
        place = _place_of(_header(file), ZEROS)
        with ThreadPoolExecutor(1) as pool:
            if os.fstat(file.fileno()).st_size > PIECE:  # the disk takes a large file in while it is hashed
                pool.submit(os.fsync, file.fileno())
            found = _digest(file, place)
        file.seek(place)
        file.write(found.encode())


def _checked_metadata(path: Path, checked: bool) -> dict[str, str]:
    """The metadata of a file whose checksum fits, or that was made before there were any."""
    with open(path, "rb") as file:
        header = _header(file)
        entries = parse_json(text_of(header, "its header"))
        metadata = entries.get("__metadata__") if isinstance(entries, dict) else None
        if not isinstance(metadata, dict) or not all(isinstance(entry, str) for entry in metadata.values()):
            raise BadState("its header says nothing about it")
        if metadata.keys() in _OLD:
            warn_unsealed(path.parent)
        elif metadata.keys() != _NEW or metadata["format"] != FORMAT or len(metadata[KEY]) != DIGITS:
            raise BadState("its header is not one of this version")
        elif not checked and _digest(file, _place_of(header, metadata[KEY])) != metadata[KEY]:
            raise BadState("its checksum does not fit")
    return metadata


def _header(file: Any) -> bytes:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, LARGEST_HEADER):
        raise BadState("it is cut short, or its header is")
    return bytes(file.read(length))


def _place_of(header: bytes, digits: str) -> int:
    """Where in the file the digits of the checksum stand: quotes within the structure are escaped, these are not."""
    wanted = f'"{KEY}":"{digits}"'.encode()
    if header.count(wanted) != 1:
        raise BadState("its checksum cannot be found")
    return 8 + header.index(wanted) + len(wanted) - 1 - DIGITS


def _digest(file: Any, place: int) -> str:
    """Checksum of a file, counting zeros where its own digits stand; read by pieces, so that little of it is held."""
    number = file.fileno()

    def piece(start: int) -> bytes:
        part = os.pread(number, PIECE, start)
        first, last = max(place - start, 0), min(place + DIGITS - start, len(part))
        if first < last:
            part = b"".join((part[:first], b"0" * (last - first), part[last:]))
        return hashlib.blake2b(part, digest_size=DIGITS // 2).digest()

    with ThreadPoolExecutor(THREADS) as pool:
        found = b"".join(pool.map(piece, range(0, os.fstat(number).st_size, PIECE)))
    return digest(found)
