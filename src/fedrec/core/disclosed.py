"""What rounds have shown of the uploads, as far as a run's card states it. It must survive a stop, as the rounds do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fedrec.core.kinds import field_hints, fits
from fedrec.core.state import BadState

Account = tuple[float, float, float, int, int]
"""rho, eta, pure, releases, charges."""


@dataclass(frozen=True)
class Disclosed:
    """What a process that goes on after the last round would not see any more."""

    exposure: tuple[int, tuple[str, ...]] | None = None
    """The most protected numbers in one client's upload, and the fields that leave as they are."""
    summands: int = 0
    """The fewest honest participants in a secure sum with noise; 0 where there was none."""
    accounts: tuple[Account, ...] = ()
    """What has been given away about clients in secure sums: each amount once."""
    holders: tuple[tuple[int, int], ...] = ()
    """The place of each client that was charged, and of its account."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as a file has them."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Any) -> Disclosed | None:
        """What a file says; None where an older version wrote none, :class:`BadState` where it is something else."""
        if plain is None:
            return None
        hints = field_hints(cls)
        if not isinstance(plain, dict) or plain.keys() != hints.keys():
            raise BadState("it does not say what the run's uploads held")
        if wrong := [name for name, value in plain.items() if not fits(value, hints[name])]:
            raise BadState(f"its entry {wrong[0]!r} does not say what the run's uploads held")
        exposure = plain["exposure"]
        return cls(
            exposure=None if exposure is None else (exposure[0], tuple(exposure[1])),
            summands=plain["summands"],
            accounts=tuple(tuple(one) for one in plain["accounts"]),
            holders=tuple(tuple(one) for one in plain["holders"]),
        )
