"""Who takes part in a round, and who drops out on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec import keyed
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput


@dataclass(frozen=True)
class Participation:
    """A share of the clients each round, drawn anew; with ``rest``, nobody twice in a row.

    FedDAE's rule (its section "Algorithm"): for privacy no client takes part in two consecutive rounds.
    The draw depends on the seed, the round and the clients' own keys alone.
    """

    share: float = 1.0
    rest: bool = False
    dropout: float = 0.0
    """Probability that a chosen client does not answer (simulation of unreliable devices)."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadInput(f"participation {self.share} is not a share; give a number above 0 and at most 1")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"dropout {self.dropout} is not a probability; give a number from 0 to below 1")
        if self.rest and self.share > 0.5:
            raise BadInput(f"participation {self.share} leaves nobody to rest; with --rest it must be at most 0.5")

    def choose(self, seed: int, number: int, client_keys: keyed.U64) -> Int64:
        """Positions of the clients that take part in round ``number`` (1, 2, ...), ascending.

        With ``rest`` the population is cut into two halves that alternate, so that the choice needs no
        memory of earlier rounds (a resumed run draws the same).
        """
        everyone = np.arange(len(client_keys))
        if self.rest:
            half = keyed.streams(keyed.stream(seed, "halves"), client_keys) & np.uint64(1)
            everyone = everyone[half == np.uint64(number % 2)]
        wanted = max(1, round(self.share * len(client_keys)))
        if wanted < len(everyone):
            draw = keyed.streams(keyed.stream(seed, number, "participation"), client_keys[everyone])
            everyone = np.sort(everyone[np.argsort(draw, kind="stable")[:wanted]])
        return everyone.astype(np.int64)

    def most(self, rounds: int) -> int:
        """The most of so many rounds in a row that one client can be chosen for, whoever is drawn."""
        return -(-rounds // 2) if self.rest else rounds

    def answering(self, seed: int, number: int, client_keys: keyed.U64, chosen: Int64) -> Int64:
        """Those of the chosen that answer."""
        if not self.dropout or not len(chosen):
            return chosen
        draw = keyed.uniform(keyed.streams(keyed.stream(seed, number, "dropout"), client_keys[chosen]), 1)[:, 0]
        return chosen[draw >= self.dropout]
