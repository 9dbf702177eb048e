"""Who takes part in secure sums: long-term keys, made by each node's operator and passed on out of band.

    NAME.sums        the node's private key (Ed25519); stays on the node
    NAME.sums.pub    one line: ``fedrec-sums KEY NAME CLIENTS``; goes to every other operator and to the server's
    members.json     all of those lines in one file, made by every operator from what the others gave it

A server that handed out keys could put its own in their place and look into every sum; so it hands out none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrec.deploy.admission import check_name
from fedrec.errors import BadInput
from fedrec.runs.atomic import private_opener, write_text, writing_to
from fedrec.runs.sealed import read_sealed_json, sealed_json
from fedrec.secure.identity import Hosts, new_key, public_bytes

FILE = "members.json"
MARK = "fedrec-sums"


def refuse_existing(folder: Path, names: tuple[str, ...]) -> None:
    """Keys are never written over."""
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise BadInput(f"{folder} already has {', '.join(there)}; move them away first, or choose another folder")


def place_for_keys(folder: Path) -> None:
    """The folder for keys, made where it is not there; a place that cannot be written to is bad input."""
    with writing_to(folder, "folder"):
        folder.mkdir(parents=True, exist_ok=True)


def make_sums_key(folder: Path, name: str, clients: int = 1) -> list[Path]:
    """A node's long-term key for secure sums, and what it gives to the others."""
    check_name(name)
    if clients < 1:
        raise BadInput(f"{clients} clients; a node hosts at least one")
    secret, public = folder / f"{name}.sums", folder / f"{name}.sums.pub"
    refuse_existing(folder, (secret.name, public.name))
    key = new_key(os.urandom)
    place_for_keys(folder)
    with open(secret, "x", encoding="ascii", opener=private_opener) as handle:
        handle.write(key.private_bytes_raw().hex() + "\n")
    write_text(public, f"{MARK} {public_bytes(key).hex()} {name} {clients}\n")
    return [secret, public]


def read_sums_key(path: Path) -> Ed25519PrivateKey:
    """A node's own key."""
    try:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        raise BadInput(f"{path} is not a node's key for secure sums; `fedrec deploy keys` makes it") from None


def collect_members(files: Iterable[Path], out: Path) -> list[str]:
    """``members.json`` from the nodes' public files; returns the names."""
    found: dict[str, Any] = {}
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")[:1000] if path.is_file() else ""
        line = re.fullmatch(rf"{MARK} ([0-9a-f]{{64}}) (\S+) ([0-9]{{1,7}})\s*", text)
        if line is None:
            raise BadInput(f"{path} is not what a node gives to the others; it is called NAME.sums.pub")
        name = check_name(line[2])
        if name in found:
            raise BadInput(f"{path}: there is another file for {name!r}; a name has one key")
        found[name] = {"key": line[1], "clients": int(line[3])}
    if sum(entry["clients"] for entry in found.values()) < 3:
        raise BadInput(f"{len(found)} members; a secure sum needs at least 3, nodes or clients")
    hosts_of(found)
    write_text(out, sealed_json({"members": found}))
    return sorted(found)


def read_members(path: Path) -> dict[str, Any]:
    """Names with their keys and numbers of clients, as they were written."""
    if not path.is_file():
        raise BadInput(f"{path} is not a file; make it with `fedrec deploy members NAME.sums.pub...`")
    found = read_sealed_json(path, "make it again from the nodes' files").get("members")
    hosts_of(found)
    assert isinstance(found, dict)
    return found


def hosts_of(members: Mapping[str, Any] | None) -> Hosts:
    """The directory of these members."""
    try:
        assert members
        keys = {check_name(name): bytes.fromhex(entry["key"]) for name, entry in members.items()}
        return Hosts(keys, {name: int(entry["clients"]) for name, entry in members.items()})
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(f"the list of members is not what `fedrec deploy members` writes into {FILE}") from None
