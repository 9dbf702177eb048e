"""Fed3CR: a consensus that every client adapts to itself, and two constraints between the two views.

Mi et al., "Federated consistency- and complementarity-aware consensus-enhanced recommendation". Client ``i``
holds u_i, V_i (private), its copy C_i of the consensus and the generator theta_i (both averaged, Eq. 8):

    p^G, p^P = mean rows of C_i and V_i over interacted items                                     (Eq. 10)
    W_i      = F([p^G, p^P]; theta_i)                                                              (Eq. 9)
    C^E      = W_i C_i,    V^F = C^E + V_i,    r = sigmoid(u . v^F_j)                           (Eq. 11-13)
    L_rec + beta_a L_a + beta_o L_o                                                               (Eq. 19)

L_a makes both views rank items alike around their prototypes (Eq. 15-16), L_o makes the feature spaces
orthogonal (Eq. 17-18). The mechanism plugs into other methods (``base``, Figure 8).

Table III as settings (transfer, beta_a, beta_o): C0 none,0,0; C1 ace,0,0; C2 none,b,0; C3 none,0,b; C4 none,b,b;
C5 ace,b,0; C6 ace,0,b. Table IV: transfer=consensus, transfer=unified. Figure 4: consistency=similarity, contrast;
complementarity=l2, mutual-information.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedrec.core.method import Card
from fedrec.methods.consensus import TwoViews, TwoViewSettings
from fedrec.methods.fedrap import schedule

SCORERS = {"none": "mf", "fedmf": "mf", "fedncf": "ncf", "pfedrec": "affine", "fedrap": "affine"}
"""The score function of each method that the mechanism is plugged into."""


class Fed3crSettings(TwoViewSettings):
    """Settings of Fed3CR."""

    transfer: Literal["none", "consensus", "unified", "ace"] = Field(
        "ace",
        description="how the consensus is enhanced: ace (Eq. 9-12), not at all, by a learnt matrix (Figure 5a), or "
        "by one matrix for both views (Figure 5b)",
    )
    beta_a: float = Field(0.5, ge=0, description="weight of consistency (Eq. 19; searched in 0.1 .. 1)")
    beta_o: float = Field(0.5, ge=0, description="weight of complementarity (Eq. 19; searched in 0.1 .. 1)")
    base: Literal["none", "fedmf", "fedncf", "pfedrec", "fedrap"] = Field(
        "none",
        description="method whose score function (and losses) the mechanism is plugged into (Figure 8)",
    )
    lambda_: float = Field(0.01, ge=0, description="with base=fedrap: weight of the tables' difference")
    mu: float = Field(0.01, ge=0, description="with base=fedrap: weight of the shared table's sparsity")


class Fed3cr(TwoViews):
    """Adaptive consensus enhancement with consistency and complementarity."""

    name = "fed3cr"
    Settings = Fed3crSettings
    small = {"layers": 2, "lr_items": 0.05}  # noqa: RUF012
    enough = {"layers": 2, "lr": 0.05, "lr_items": 3.0, "decay": 1.0, "private_rate": 0.003}  # noqa: RUF012
    enough_rounds = 10
    card = Card(
        title="Fed3CR: the consensus adapted by each client, consistent with and orthogonal to its private view",
        paper="Mi et al., Federated consistency- and complementarity-aware consensus-enhanced recommendation",
        private="user vector, private item table, interactions",
        upload="changes of the consensus table, all rows, and of the transfer-matrix generator",
        sum_suffices=True,
        departures=(
            "Eq. 15 as printed divides cosines by their sum and can be negative; here it is a softmax over cosines "
            "times the length scale (consistency=ranking-printed for the quotient, cut off at zero)",
            "Eq. 7 is a sum over samples and so is our loss: with FedRAP's mean and its rates in the hundreds the "
            "orthogonality constraint, a sum over all items, diverges",
            "the step along L_o is shortened where a full one would overshoot (clients with many items), and vectors "
            "shorter than norm_floor count as that long in cosines: both gradients are unbounded otherwise",
            "the last bias of the generator starts at the identity, so that an untrained W passes the consensus on",
            "user vectors and tables start small and normal; the paper does not say how they start, nor the rates",
            "a client with several users has one W, made from the prototypes of all its interactions",
            "the alternatives of Figure 4 are the usual forms (cosine, InfoNCE among the mini-batch, mean squared "
            "distance, mutual information of Gaussian dimensions): the paper gives no formulas",
            "plugged into a method without a private item table (base=fedmf, fedncf, pfedrec), the client gets one: "
            "the constraints need two views",
        ),
    )

    def scorer_name(self) -> str:
        return SCORERS[self.settings.base]

    def extra(self, number: int) -> dict[str, float]:
        if self.settings.base != "fedrap":
            return {}
        rise = schedule("none", number)
        return {"lambda_": self.settings.lambda_ * rise, "mu": self.settings.mu * rise}
