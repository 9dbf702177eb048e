"""Settings of FedCA, exact and approximate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedrec.methods._shared.personal import PersonalSettings


class FedCaSettings(PersonalSettings):
    """Settings of FedCA; defaults as section 6 gives them for most data (the recipe refines per data set)."""

    alpha: float = Field(0.5, ge=0, description="weight of model similarity (Eq. 4, 5, 8)")
    beta: float = Field(0.2, ge=0, description="weight of data complementarity (Eq. 4, 5, 8)")
    rho: float = Field(0.8, ge=0, le=1, description="share of the client's own last table in the blend (section 5.1.3)")
    r: float = Field(0.6, gt=0, le=1, description="share of a round's clients that is aggregated (section 6.1)")
    k: int = Field(4, ge=1, description="singular vectors that a client sends (section 5.1.1)")
    complementarity: Literal["cos", "sin", "raw"] = Field(
        "cos", description="Table 11: cosine or sine of the mean angle, or cosine without the SVD (raw)"
    )
    normalise: Literal["eq8", "eq5"] = Field(
        "eq8", description="Eq. (8), or with the factor (1 + alpha) of Eq. (5) on the quadratic term"
    )
    proximal: float = Field(0.0, ge=0, description="mu of the proximal term mu/2 ||Q - Q_start||^2 (Table 9)")
    noise_svd: float = Field(0.0, ge=0, description="scale of Laplace noise on the SVD part (delta', Table 6)")
    variant_similarity: Literal["paper", "code"] = Field(
        "paper", description="Eq. (6) on whole tables, or the public code's one-component projections"
    )
    variant_complementarity: Literal["paper", "code"] = Field(
        "paper", description="left singular vectors (Eq. 7), or the public code's matched principal components"
    )
    weights: Literal["paper", "code"] = Field(
        "paper", description="Eq. (8), or the public code's: alpha and beta swapped, both terms doubled"
    )
    neighbours: int = Field(0, ge=0, description="0; with more, candidates of each client, it is fedca-approx")
    rows: int = Field(256, ge=1, description="rows that a table keeps in fedca-approx")


class FedCaApproxSettings(FedCaSettings):
    """Settings of FedCA for very many clients."""

    neighbours: int = Field(32, ge=1, description="candidates of each client")
    rows: int = Field(256, ge=1, description="rows that a table keeps: those that differ most from the initial one")
