"""Which nodes are admitted: a name belongs to one key, and a node proves that it holds the key.

``nodes.json`` in the server's folder is the list; ``fedrec deploy register`` and ``revoke`` write it. It is read
anew whenever it changes, so that a revoked node is out from the next call on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fedrec.deploy.processes import one_at_a_time
from fedrec.errors import BadInput
from fedrec.runs.atomic import write_text

LIST = "nodes.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass
class Admission:
    """The server's list of admitted nodes."""

    folder: Path
    _seen: tuple[int, int, int] = field(default=(0, 0, 0), init=False)
    _known: dict[str, bytes] = field(default_factory=dict, init=False)

    def nodes(self) -> dict[str, bytes]:
        """Names and keys (PEM) of the nodes that are admitted now."""
        try:
            about = os.stat(self.folder / LIST)
        except FileNotFoundError:
            return {}
        mark = (about.st_mtime_ns, about.st_ino, about.st_size)
        if mark != self._seen:
            nodes = self._read()["nodes"]
            self._known, self._seen = {name: entry["key"].encode() for name, entry in nodes.items()}, mark
        return self._known

    def keys(self) -> frozenset[bytes]:
        return frozenset(self.nodes().values())

    def admit(self, name: str, key: bytes) -> None:
        """Let a key in under a name; a name or key that is taken is refused."""
        check_name(name)
        with self._changing() as content:
            holder = content["nodes"].get(name)
            if holder is not None and holder["key"].encode() != key:
                raise BadInput(
                    f"the name {name!r} belongs to another key ({fingerprint(holder['key'].encode())}); "
                    f"choose another --name, or revoke it first (`fedrec deploy revoke {name}`)"
                )
            for other, entry in content["nodes"].items():
                if entry["key"].encode() == key and other != name:
                    raise BadInput(f"this key is already admitted as {other!r}; a node has one key and one name")
            content["nodes"][name] = {"key": key.decode(), "since": _now()}

    def revoke(self, name: str) -> bytes:
        """Take a name's key off the list; returns the key."""
        with self._changing() as content:
            if name not in content["nodes"]:
                known = ", ".join(sorted(content["nodes"])) or "none"
                raise BadInput(f"no node named {name!r} is admitted; admitted: {known}")
            entry = content["nodes"].pop(name)
            content["revoked"].append({"name": name, **entry, "until": _now()})
        return str(entry["key"]).encode()

    def revoked(self, name: str) -> bool:
        """Whether the name had a key once and has none now."""
        if name in self.nodes():
            return False
        return any(entry["name"] == name for entry in self._read()["revoked"])

    def _read(self) -> dict[str, Any]:
        path = self.folder / LIST
        if not path.is_file():
            return {"nodes": {}, "revoked": []}
        try:
            outer = json.loads(path.read_text(encoding="utf-8"))
            content = outer["content"]
            whole = outer["checksum"] == _checksum(content)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise BadInput(f"{path} is damaged (its checksum does not fit); restore it, or register the nodes again")
        return dict(content)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The content, to be changed; written back whole, one process at a time."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with one_at_a_time(self.folder / f".{LIST}.lock"):
            content = self._read()
            yield content
            outer = {"content": content, "checksum": _checksum(content)}
            write_text(self.folder / LIST, json.dumps(outer, indent=1) + "\n", private=True)


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise BadInput(f"{name[:80]!r} is not a node's name; use up to 64 letters, digits, '.', '_' or '-'")
    return name


def check_private_key(path: Path) -> None:
    """A node's own key must be one that `fedrec deploy keys` makes."""
    try:
        serialization.load_ssh_private_key(path.read_bytes()[:10_000], None)
    except (OSError, TypeError, ValueError, UnsupportedAlgorithm):
        raise BadInput(f"{path} is not a node's private key; give the file NAME of `fedrec deploy keys`") from None


def read_public_key(path: Path) -> tuple[bytes, str]:
    """A node's public key (PEM) out of its ``.pub`` file, and the name written behind it."""
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give the .pub file of a node's key")
    data = path.read_bytes()[:10_000]
    try:
        key = serialization.load_ssh_public_key(data)
    except Exception:
        raise BadInput(f"{path} is not a public key; give the .pub file that `fedrec deploy keys` made") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise BadInput(f"{path} is not an elliptic-curve key; make one with `fedrec deploy keys FOLDER --node NAME`")
    comment = data.decode(errors="replace").split(maxsplit=2)[2:]
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem, comment[0].strip() if comment else ""


def fingerprint(key: bytes) -> str:
    """A short name of a key, for logs."""
    return hashlib.sha256(key).hexdigest()[:16]


def sign(private_key: Path, claim: bytes) -> bytes:
    """A claim signed with a node's private key."""
    key = serialization.load_ssh_private_key(private_key.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadInput(f"{private_key} is not an elliptic-curve key")
    return key.sign(claim, ec.ECDSA(hashes.SHA256()))


def public_key_of(private_key: Path) -> bytes:
    """The public half (PEM) of a node's private key."""
    key = serialization.load_ssh_private_key(private_key.read_bytes(), None)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def verified(public_key: bytes, claim: bytes, signature: bytes) -> bool:
    """Whether the holder of the public key (PEM) has signed the claim."""
    try:
        key = serialization.load_pem_public_key(public_key)
        if not isinstance(key, ec.EllipticCurvePublicKey):
            return False
        key.verify(signature, claim, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def _checksum(content: Any) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
