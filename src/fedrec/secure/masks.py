"""Masks: who shares a secret with whom, and the keystream that hides a vector. All from ``cryptography``.

Everything derived is bound to one plan (run, round, cohort, attempt, members, layout: its digest is the salt of
every derivation) and to one purpose and pair, so that nothing derived for one place fits another.

Secrets are 16 random bytes: 128 bits, which is also what X25519 gives. They are spread to 32 bytes by HKDF-SHA256
under the plan's digest and the owner's place, so that an attack on one secret tells nothing about another.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from fedrec.secure.failures import Refusal
from fedrec.secure.ring import Bits, Words, word_type

SECRET_BYTES = 16
SEED_BYTES = 32
TAG_BYTES = 16


def derive(secret: bytes, digest: bytes, purpose: str, *places: int) -> bytes:
    """32 bytes for one purpose, bound to the plan and to the members at ``places``."""
    info = b"fedrec secure sum 1|" + purpose.encode() + b"|" + b"".join(place.to_bytes(4, "big") for place in places)
    return HKDF(algorithm=SHA256(), length=SEED_BYTES, salt=digest, info=info).derive(secret)


def mask_key(secret: bytes, digest: bytes, place: int) -> X25519PrivateKey:
    """The X25519 key of a member's pairwise masks, made of the 16 bytes that its neighbours hold shares of."""
    return X25519PrivateKey.from_private_bytes(derive(secret, digest, "mask key", place))


def agree(own: X25519PrivateKey, other: bytes) -> bytes:
    """The X25519 secret of two parties; a public key of small order, which would make it known, is refused."""
    try:
        return own.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError as wrong:
        raise Refusal(f"a public key cannot be used: {wrong}") from None


def pair_seed(own: X25519PrivateKey, other: bytes, digest: bytes, place: int, other_place: int) -> bytes:
    """The seed of the mask between two members: the same from either side."""
    return derive(agree(own, other), digest, "pair", min(place, other_place), max(place, other_place))


def self_seed(secret: bytes, digest: bytes, place: int) -> bytes:
    """The seed of a member's own mask."""
    return derive(secret, digest, "self", place)


def sign_of(place: int, other_place: int) -> int:
    """The lower of two members adds their mask, the higher takes it away: in the sum it is gone."""
    return 1 if place < other_place else -1


@lru_cache(maxsize=2)
def _zeros(count: int) -> bytes:
    return bytes(count)


def keystream(seed: bytes, count: int) -> bytearray:
    """AES-256 in counter mode; a seed is used for one keystream only, so the counter starts at zero."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a mask needs a seed of {SEED_BYTES} bytes, not {len(seed)}")
    out = bytearray(count)
    Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update_into(_zeros(count), out)
    return out


def mask(seed: bytes, length: int, bits: Bits, checks: int) -> tuple[Words, NDArray[np.uint64]]:
    """The mask of a vector of ``length`` ring words and of ``checks`` words modulo 2^64 behind it."""
    width = word_type(bits).itemsize
    stream = keystream(seed, width * length + 8 * checks)
    words: Words = np.frombuffer(stream, dtype=word_type(bits), count=length)
    return words, np.frombuffer(stream, dtype="<u8", count=checks, offset=width * length)


def apply_masks(words: Words, checks: NDArray[np.uint64], masks: Iterable[tuple[int, bytes]], bits: Bits) -> None:
    """Add (sign 1) or take away (sign -1) the mask of each seed, in place."""
    for sign, seed in masks:
        noise, check_noise = mask(seed, len(words), bits, len(checks))
        change = np.add if sign > 0 else np.subtract
        change(words, noise, out=words)
        change(checks, check_noise, out=checks)


def seal(channel: bytes, digest: bytes, sender: int, receiver: int, content: bytes) -> bytes:
    """AES-256-GCM from sender to receiver. The key serves one message of one direction, so its nonce is zero."""
    key = derive(channel, digest, "seal", sender, receiver)
    return AESGCM(key).encrypt(bytes(12), content, digest)


def unseal(channel: bytes, digest: bytes, sender: int, receiver: int, sealed: bytes) -> bytes:
    """What was sealed; refused where a bit of it, the plan or the direction differs."""
    key = derive(channel, digest, "seal", sender, receiver)
    try:
        return AESGCM(key).decrypt(bytes(12), sealed, digest)
    except InvalidTag:
        raise Refusal(f"the sealed shares from member {sender} were altered or belong elsewhere") from None
