"""Long-term keys: who a member is. Public keys are given out of band, so that a server cannot put its own in place."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fedrec.errors import BadInput
from fedrec.secure.failures import Refusal
from fedrec.secure.randomness import Entropy

SIGNATURE_BYTES = 64


class Directory:
    """Names and their Ed25519 public keys (32 bytes each), as given out of band."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if len(set(keys.values())) < len(keys):
            raise BadInput("two names in the directory have the same key; each participant needs its own")
        try:
            self._keys = {name: Ed25519PublicKey.from_public_bytes(key) for name, key in keys.items()}
        except ValueError:
            raise BadInput("a key in the directory is not an Ed25519 public key of 32 bytes") from None

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def verify(self, name: str, signature: bytes, text: bytes) -> None:
        """Refuse what ``name`` did not sign."""
        if name not in self._keys:
            raise Refusal(f"{name!r} is not in the directory of participants")
        try:
            self._keys[name].verify(signature, text)
        except InvalidSignature:
            raise Refusal(
                f"the signature is not that of {name!r} over this message in this run, round, cohort and attempt"
            ) from None


class Hosts(Directory):
    """A directory of nodes, each of which also speaks for its clients: ``NODE/0`` to ``NODE/(clients - 1)``.

    How many clients a node has is given out of band with its key: a node that could claim any number would be as large
    a share of a cohort as it likes.
    """

    def __init__(self, keys: Mapping[str, bytes], clients: Mapping[str, int]) -> None:
        super().__init__(keys)
        self._clients = dict(clients)

    def __contains__(self, name: str) -> bool:
        return self._key_of(name) is not None

    def verify(self, name: str, signature: bytes, text: bytes) -> None:
        super().verify(self._key_of(name) or name, signature, text)

    def _key_of(self, name: str) -> str | None:
        """The node that signs for a member; None for a stranger."""
        node, slash, number = name.partition("/")
        if node not in self._keys:
            return None
        known = not slash or (number.isascii() and number.isdigit() and str(int(number)) == number)
        return node if known and int(number or 0) < self._clients.get(node, 1) else None


def host_of(member: str) -> str:
    """The node that a member is, or is hosted by."""
    return member.partition("/")[0]


def client_of(node: str, position: int) -> str:
    """The name of a node's client in secure sums."""
    return f"{node}/{position}"


def new_key(entropy: Entropy) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(entropy(32))


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """What goes into the directories of the others."""
    return key.public_key().public_bytes_raw()
