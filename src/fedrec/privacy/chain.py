"""The outgoing chain: what is done to an upload between a client's local work and the wire.

The order is clip, noise, compress. Clip before noise bounds what the noise must hide; compression after
noise sees only what may be seen by anyone, so it is post-processing and keeps the guarantee whatever it
does. (Compressing first would cost fewer bytes of noise, but which coordinates were kept would itself be
private data, sent in the open.) The server unwinds the links in reverse.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.core.settings import PrivacySettings
from fedrec.privacy.clip import Clip
from fedrec.privacy.fields import Sent
from fedrec.privacy.link import Link
from fedrec.privacy.lowrank import Truncate
from fedrec.privacy.noise import Noise, Source
from fedrec.privacy.quantise import Quantise
from fedrec.privacy.topk import KeepLargest


@dataclass(frozen=True)
class Chain:
    """Links in the order in which an upload passes them."""

    links: tuple[Link, ...] = ()

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        """What the clients of the block send: the same type, some fields perhaps in compressed form."""
        for link in self.links:
            upload = link.apply(upload, block, keys)
        return upload

    def restore(self, upload: Sent) -> Sent:
        """What the server works with: the same type, every field plain."""
        for link in reversed(self.links):
            upload = link.restore(upload)
        return upload


def outgoing(settings: PrivacySettings, source: Source = "keyed") -> Chain:
    """The chain that the settings ask for.

    ``source`` is where noise comes from: ``keyed`` for simulation (repeatable), ``system`` for clients that
    face a real server (secret; see :mod:`fedrec.privacy.draws`).
    """
    links: list[Link] = []
    if settings.clip > 0:
        links.append(Clip(settings.clip, settings.clip_norm))
    if settings.noise > 0:
        links.append(Noise(settings.noise, settings.noise_kind, source))
    if settings.compress == "topk":
        links.append(KeepLargest(settings.compress_keep))
    elif settings.compress == "lowrank":
        links.append(Truncate(settings.compress_keep))
    elif settings.compress == "int8":
        links.append(Quantise(settings.upload_form))
    return Chain(tuple(links))


def describe(settings: PrivacySettings) -> str:
    """One line for a run's record: what is done to an upload, and how it crosses the wire.

    >>> describe(PrivacySettings(clip=1, noise=0.1))
    'clip to L2 norm 1, then Laplace noise of scale 0.1 on every coordinate; sent as whole tables in float32'
    """
    done = [f"clip to {settings.clip_norm.upper()} norm {settings.clip:g}"] if settings.clip > 0 else []
    if settings.noise > 0:
        kind = "Laplace noise of scale" if settings.noise_kind == "laplace" else "Gaussian noise of deviation"
        done.append(f"{kind} {settings.noise:g} on every coordinate")
    if settings.compress != "none":
        kept = f"{settings.compress_keep:.3g} of"
        forms = {"topk": f"largest {kept} coordinates", "lowrank": f"tables truncated to {kept} their rank"}
        done.append(forms.get(settings.compress, "8 bits a number"))
    tables = "whole tables" if settings.upload_form == "dense" or settings.noise > 0 else "changed rows"
    line = ", then ".join(done) or "no clip, no noise, no compression"
    line += f"; sent as {tables} in {settings.precision}"
    if settings.noise == 0 and (settings.upload_form == "rows" or settings.compress == "topk"):
        line += "; indices show which items a client has touched"
    return line
