"""Settings of FedCA, exact and approximate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedrec.errors import BadInput
from fedrec.methods._shared.personal import PersonalSettings

Weight = Annotated[float, Field(ge=0)] | Literal["auto"]


class FedCaSettings(PersonalSettings):
    """Settings of FedCA; defaults as section 6 gives them for most data (the recipe refines per data set)."""

    alpha: Weight = Field(0.5, description="weight of model similarity (Eq. 4, 5, 8); auto: found with beta=auto")
    beta: Weight = Field(
        0.2,
        description="weight of data complementarity (Eq. 4, 5, 8); auto: alpha and beta are tried on validation items, "
        "which stay on the clients",
    )
    rho: float = Field(0.8, ge=0, le=1, description="share of the client's own last table in the blend (section 5.1.3)")
    blend: Literal["training", "inference"] = Field(
        "training", description="where the blend is applied: before local training too, or at inference only"
    )
    r: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the clients that trained whose tables are mixed; the others keep theirs. --participation "
        "sets who trains (Algorithm 1, line 4)",
    )
    proxy: Literal["mean", "size", "distance"] = Field(
        "size", description=
            "p of section 5.2: all alike (FCF), by relative size of data (FedAvg), or by distance from the table that "
            "was sent (FedAtt)",
    )  # fmt: skip
    train_from: Literal["mixture", "average"] = Field(
        "mixture", description=
            "what local training starts from: the client's own mixture (Algorithm 1, line 5), or the average by p "
            "alone (mixtures are then used for inference only)",
    )  # fmt: skip
    averaged: Literal["tables", "rows"] = Field(
        "tables", description="what is averaged: whole tables, or each row over only the clients that trained it"
    )
    own_term: bool = Field(True, description="whether s_uu and c_uu count; if not, a client's own weight is p_u")
    standardised: bool = Field(
        False, description="s and c of other clients are centred, and divided by their spread over all pairs and by n"
    )
    k: int = Field(4, ge=1, description="singular vectors that a client sends (section 5.1.1)")
    complementarity: Literal["cos", "sin", "raw"] = Field(
        "cos", description="Table 11: cosine or sine of the mean angle, or cosine without the SVD (raw)"
    )
    normalise: Literal["eq8", "eq5"] = Field(
        "eq8", description="Eq. (8), or with the factor (1 + alpha) of Eq. (5) on the quadratic term"
    )
    proximal: float = Field(0.0, ge=0, description="mu of the proximal term mu/2 ||Q - Q_start||^2 (Table 9)")
    noise_svd: float = Field(0.0, ge=0, description="scale of Laplace noise on the SVD part (delta', Table 6)")
    variant_similarity: Literal["paper", "code", "changes"] = Field(
        "paper",
        description="Eq. (6) on whole tables, the public code's one-component projections, or the cosine of the "
        "tables' changes in local training",
    )
    variant_complementarity: Literal["paper", "code"] = Field(
        "paper", description="left singular vectors (Eq. 7), or the public code's matched principal components"
    )
    weights: Literal["paper", "code"] = Field(
        "paper", description="Eq. (8), or the public code's: alpha and beta swapped, both terms doubled"
    )
    neighbours: int = Field(0, ge=0, description="candidates of each client in fedca-approx; fedca itself takes only 0")
    rows: int = Field(256, ge=1, description="rows that a table keeps in fedca-approx")

    @property
    def auto(self) -> bool:
        """Whether alpha and beta are found on the way."""
        return "auto" in (self.alpha, self.beta)


class FedCaApproxSettings(FedCaSettings):
    """Settings of FedCA for very many clients."""

    neighbours: int = Field(32, ge=1, description="candidates of each client")
    rows: int = Field(256, ge=1, description="rows that a table keeps: those that differ most from the initial one")


def check(chosen: FedCaSettings) -> None:
    """Settings that do not go together are bad input."""
    if chosen.neighbours:
        raise BadInput(f"fedca has no neighbours; use fedca-approx with neighbours={chosen.neighbours}")
    if chosen.auto:
        if chosen.alpha != chosen.beta:
            raise BadInput("alpha=auto and beta=auto go together: values of both are tried")
        if chosen.train_from != "average" or chosen.backbone != "mf" or chosen.weights == "code":
            raise BadInput("alpha=auto, beta=auto work with train_from=average, backbone=mf and weights=paper")
    compared = chosen.averaged == "rows" or chosen.variant_similarity == "changes"
    if compared and chosen.rho and chosen.blend == "training":
        raise BadInput(
            "averaged=rows and variant_similarity=changes need the table that training started from, which the server "
            "does not know when clients blend in their own; set blend=inference or rho=0"
        )
    if compared and (chosen.clip or chosen.compress != "none" or chosen.precision == "float16"):
        raise BadInput(
            "averaged=rows and variant_similarity=changes compare tables with what was sent; leave clip, compress and "
            "precision=float16 out"
        )
