"""What a result must say before anything is made of it: whoever mails a folder writes it, with a manifest that fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fedrec.core.kinds import Parts, fits
from fedrec.privacy.card import card_lines

MUST: dict[str, Any] = {
    "schema": str, "method": str, "protocol": str, "seed": int, "rounds": int, "selected_round": int,
    "data": dict[str, Any], "data.name": str, "data.users": int, "data.items": int, "data.clients": int,
    "data.interactions": int | None,
    "metrics": Parts({"test": dict[str, float], "valid": dict[str, float]}),
    "seconds": dict[str, float], "seconds.total": float, "seconds.train": float, "seconds.aggregate": float,
    "seconds.evaluate": float, "bytes": dict[str, float], "bytes.upload": float, "bytes.download": float,
    "settings": dict[str, Any], "settings.rounds": int, "settings.settings": dict[str, Any],
}  # fmt: skip
"""By place, at least."""

MAY: dict[str, Any] = {
    "privacy": str, "memory": dict[str, float], "versions": dict[str, str], "origin": dict[str, Any],
    "privacy_card": dict[str, Any],
}  # fmt: skip
"""What need not be there; what is, is of this kind."""

SECURE: dict[str, Any] = {
    "secure.cohorts": float, "secure.smallest_cohort": float, "secure.repeated": float, "secure.plain_upload": float,
    "secure.bytes": dict[str, Any], "secure.bytes.upload": dict[str, float], "secure.seconds": dict[str, float],
    "secure.seconds.clients": float, "secure.seconds.server": float,
}  # fmt: skip
"""Of a run with secure sums that had rounds."""


def wrong_in(found: Mapping[str, Any]) -> str | None:
    """The first place that is not as it is in a result; None where all are."""
    must = {**MUST, **{name: hint for name, hint in MAY.items() if name in found}}
    if found.get("privacy_card"):
        must["privacy"] = str
    if found.get("secure"):
        must |= SECURE
    for place, hint in must.items():
        value: Any = found
        for name in place.split("."):
            if not isinstance(value, dict) or name not in value:
                return place
            value = value[name]
        if not fits(value, hint):
            return place
    spent = ((part, value) for part in ("seconds", "bytes") for value in found[part].values())
    endless = next((part for part, value in spent if not math.isfinite(value)), None)
    return endless or _wrong_card(found)


def _wrong_card(found: Mapping[str, Any]) -> str | None:
    try:
        card_lines(found["privacy_card"]) if found.get("privacy_card") else ()
    except (KeyError, TypeError, ValueError, AttributeError):
        return "privacy_card"
    return None
