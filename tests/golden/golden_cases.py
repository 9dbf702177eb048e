"""The toy runs whose figures are written down: every method, and every setting that takes another way through code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

WORLD = "scale:users=40,items=60,interactions=760"
"""A world of a hundredth of a second, with times, popular items and groups of taste."""

SMALL: dict[str, Any] = {"dim": 4, "epochs": 2, "batch_size": 32}
"""Settings of every case whose method has them."""

TWO_VIEWS: dict[str, Any] = {
    "private_rate": 1.0, "decay": 0.97, "init": "uniform", "init_scale": 0.2,
    "shared_scale": 0.01, "private_scale": 0.01,
}  # fmt: skip
"""Rates and starts that a recipe for real data may change."""

OWN: dict[str, dict[str, Any]] = {
    "ease": {"lam": 20.0},
    "gfcf": {"k": 8},
    "sasrec": {"length": 8, "blocks": 1},
    "recvae": {"hidden": 12},
    "fedfast": {"clusters": 4},
    "perfedrec": {"clusters": 3},
    "cofedrec": {"categories": 3, "groups": 2},
    "fedca": {"k": 2},
    "fedca-approx": {"k": 2},
    "fedvae": {"dim": 3, "chunk": 8},
    "feddae": {"dim": 3, "chunk": 8},
    "fedrap": {**TWO_VIEWS, "lr_items": 5.0, "lr": 0.5, "reduction": "mean"},
    "fed3cr": {**TWO_VIEWS, "layers": 2, "lr_items": 0.05, "lr": 0.01, "lr_transfer": 0.01},
    "fediar": {"warmup": 1, "lr_items": 5.0, "clusters": 4, "private_rate": 1.0},
    "fedease": {"lam": 20.0},
    "fedspectral": {"k": 4},
    "fedelsa": {"dim": 4},
    "fedcia": {"k": 6},
}
"""Further settings of every case of a method."""


@dataclass(frozen=True)
class Case:
    """One toy run: a method, its settings, and options of the run."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def case(method: str, options: dict[str, Any] | None = None, /, **settings: Any) -> Case:
    return Case(method, settings, options or {})


CASES: dict[str, Case] = {
    # centralised references
    "random": case("random"),
    "popularity": case("popularity"),
    "ease": case("ease"),
    "gfcf": case("gfcf"),
    "mf": case("mf"),
    "mf bce sgd": case("mf", objective="bce", optimizer="sgd", lr=0.1),
    "mf torch": case("mf", engine="torch"),
    "neumf": case("neumf"),
    "neumf bpr sgd": case("neumf", objective="bpr", optimizer="sgd"),
    "sasrec": case("sasrec"),
    "sasrec sgd": case("sasrec", optimizer="sgd"),
    "lightgcn": case("lightgcn"),
    "lightgcn sgd": case("lightgcn", optimizer="sgd"),
    "multvae": case("multvae"),
    "recvae": case("recvae"),
    "centdae": case("centdae"),
    # one shared table
    "local": case("local"),
    "local ncf": case("local", backbone="ncf"),
    "fcf": case("fcf"),
    "fcf torch": case("fcf", engine="torch"),
    "fedavg": case("fedavg"),
    "fedavg torch": case("fedavg", engine="torch"),
    "fedavg kernel bpr": case("fedavg", engine="kernel", objective="bpr"),
    "fedavg torch bpr sgd": case("fedavg", engine="torch", objective="bpr", optimizer="sgd"),
    "fedavg sgd normal": case("fedavg", optimizer="sgd", init="normal", lr=0.1),
    "fedavg uniform": case("fedavg", init="uniform"),
    "fedavg ncf": case("fedavg", backbone="ncf"),
    "fedavg sasrec": case("fedavg", backbone="sasrec"),
    "fedavg clip gaussian": case("fedavg", clip=0.5, noise=0.01, noise_kind="gaussian"),
    "fedavg clip l1 laplace": case("fedavg", clip=2.0, clip_norm="l1", noise=0.01),
    "fedavg int8": case("fedavg", compress="int8"),
    "fedavg lowrank": case("fedavg", compress="lowrank", compress_keep=0.5),
    "fedavg topk rows float16": case("fedavg", compress="topk", upload_form="rows", precision="float16"),
    "fedavg rows float64": case("fedavg", upload_form="rows", precision="float64"),
    "fedavg some drop out": case("fedavg", {"participation": 0.5, "dropout": 0.2}),
    "fedavg resting": case("fedavg", {"participation": 0.5, "rest": True, "evaluate_every": 2}),
    "fedavg organisations": case("fedavg", {"clients": 7}),
    "fedavg ncf organisations": case("fedavg", {"clients": 7}, backbone="ncf"),
    "fedavg paper-fedca": case("fedavg", {"protocol": "paper-fedca"}),
    "fedavg paper-fed3cr": case("fedavg", {"protocol": "paper-fed3cr"}),
    "fedavg paper-fediar": case("fedavg", {"protocol": "paper-fediar"}),
    "fedavg paper-feddae": case("fedavg", {"protocol": "paper-feddae"}),
    "fedavg paper-fedcia": case("fedavg", {"protocol": "paper-fedcia"}),
    "fedavg train share": case("fedavg", {"train_share": 0.5, "evaluate_users": 20}),
    "fedmf": case("fedmf"),
    "fedmf sgd": case("fedmf", server_optimizer="sgd"),
    "fedmf parameters": case("fedmf", exchange="parameters"),
    "fedmf ncf": case("fedmf", backbone="ncf"),
    "fedncf": case("fedncf"),
    "fedncf mf": case("fedncf", backbone="mf"),
    "fedncf bpr sgd": case("fedncf", objective="bpr", optimizer="sgd"),
    "fedatt": case("fedatt"),
    "fedatt l1 ncf": case("fedatt", distance="l1", backbone="ncf"),
    "fedfast": case("fedfast"),
    "fedfast ncf": case("fedfast", backbone="ncf"),
    "fedlightgcn": case("fedlightgcn"),
    "fedlightgcn organisations": case("fedlightgcn", {"clients": 7}),
    # a table for each client
    "perfedrec": case("perfedrec"),
    "perfedrec model": case("perfedrec", features="model", client_weights="equal", proximal=0.01),
    "perfedrec ncf": case("perfedrec", backbone="ncf"),
    "pfedgraph": case("pfedgraph"),
    "pfedgraph cosine": case("pfedgraph", similarity="cosine", proximal=0.01),
    "pfedgraph ncf": case("pfedgraph", backbone="ncf"),
    "gpfedrec": case("gpfedrec"),
    "gpfedrec farthest": case("gpfedrec", graph="farthest", neighbours=5, layers=2),
    "gpfedrec ncf": case("gpfedrec", backbone="ncf"),
    "pfedrec": case("pfedrec"),
    "pfedrec untuned adam": case("pfedrec", tune=False, optimizer="adam", lr_items_factor=0.0),
    "pfedrec ncf": case("pfedrec", backbone="ncf"),
    "pfedrec torch local": case("pfedrec", {"protocol": "paper-fedca"}, engine="torch"),
    "cofedrec": case("cofedrec"),
    "cofedrec ncf": case("cofedrec", backbone="ncf"),
    # FedCA
    "fedca": case("fedca"),
    "fedca some local": case("fedca", {"participation": 0.5, "protocol": "paper-fedca"}),
    "fedca ncf": case("fedca", backbone="ncf"),
    "fedca torch": case("fedca", engine="torch", proximal=0.01),
    "fedca no blend": case("fedca", rho=0.0, r=1.0),
    "fedca sin eq5": case("fedca", complementarity="sin", normalise="eq5"),
    "fedca raw": case("fedca", complementarity="raw", noise_svd=0.01),
    "fedca as coded": case("fedca", variant_similarity="code", variant_complementarity="code", weights="code"),
    "fedca code similarity": case("fedca", variant_similarity="code"),
    "fedca code complementarity": case("fedca", variant_complementarity="code"),
    "fedca approximate": case("fedca-approx", neighbours=6, rows=20),
    # as it was asked for when it was a mode of fedca
    "fedca approximate sin": case("fedca", {"participation": 0.5}, neighbours=6, rows=20, complementarity="sin"),
    "fedca noise": case("fedca", noise=0.01, clip=1.0),
    "fedca share mixed": case("fedca", r=0.6, blend="inference", own_term=False),
    "fedca average rows": case(
        "fedca", rho=0.0, train_from="average", averaged="rows", variant_similarity="changes", standardised=True
    ),
    "fedca auto": case(
        "fedca",
        {"participation": 0.6},
        alpha="auto",
        beta="auto",
        rho=0.5,
        blend="inference",
        train_from="average",
        proxy="distance",
    ),
    "fedca average ncf": case("fedca", backbone="ncf", rho=0.0, train_from="average", proxy="mean"),
    # two views of every item
    "fedrap": case("fedrap"),
    "fedrap torch": case("fedrap", engine="torch"),
    "fedrap enhanced": case("fedrap", transfer="ace", beta_a=0.1, beta_o=0.1, layers=2),
    "fedrap tanh sum": case("fedrap", schedule="tanh", reduction="sum", lr_items=0.05),
    "fedrap public code": case(
        "fedrap",
        init="normal",
        init_scale=0.1,
        shared_scale=1.0,
        private_scale=1.0,
        decay_step=0.95,
        weight_decay=1e-4,
        tolerance=1e-4,
    ),
    "fed3cr": case("fed3cr"),
    "fed3cr torch": case("fed3cr", engine="torch"),
    "fed3cr local": case("fed3cr", {"protocol": "paper-fediar", "participation": 0.5}),
    "fed3cr adam": case("fed3cr", optimizer="adam", lr=0.01, lr_items=0.01),
    "fed3cr three layers": case("fed3cr", layers=3),
    "fed3cr no transfer": case("fed3cr", transfer="none"),
    "fed3cr consensus matrix": case("fed3cr", transfer="consensus"),
    "fed3cr unified matrix": case("fed3cr", transfer="unified"),
    "fed3cr unified torch": case("fed3cr", transfer="unified", engine="torch"),
    "fed3cr no consistency": case("fed3cr", beta_a=0.0),
    "fed3cr no complementarity": case("fed3cr", beta_o=0.0),
    "fed3cr nothing": case("fed3cr", beta_a=0.0, beta_o=0.0, transfer="none"),
    "fed3cr printed": case("fed3cr", consistency="ranking-printed", beta_a=0.01, lr_items=0.001, lr=0.001),
    "fed3cr similarity": case("fed3cr", consistency="similarity"),
    "fed3cr contrast": case("fed3cr", consistency="contrast"),
    "fed3cr l2": case("fed3cr", complementarity="l2"),
    "fed3cr mutual information": case("fed3cr", complementarity="mutual-information"),
    "fed3cr mean": case("fed3cr", reduction="mean"),
    "fed3cr on disk": case("fed3cr", private_budget_mb=0),
    "fed3cr organisations": case("fed3cr", {"clients": 7}),
    "fed3cr with fedmf": case("fed3cr", base="fedmf"),
    "fed3cr with fedncf": case("fed3cr", base="fedncf"),
    "fed3cr with pfedrec": case("fed3cr", base="pfedrec"),
    "fed3cr with fedrap": case("fed3cr", base="fedrap"),
    "fediar": case("fediar"),
    "fediar torch": case("fediar", engine="torch"),
    "fediar adam": case("fediar", optimizer="adam", lr=0.01, lr_items=0.01),
    "fediar local": case("fediar", {"protocol": "paper-fediar", "participation": 0.5}),
    "fediar equal gate": case("fediar", gate="equal"),
    "fediar sum gate": case("fediar", gate="sum", private_rate=0.02),
    "fediar no exploration": case("fediar", explore=False),
    "fediar neither": case("fediar", gate="equal", explore=False),
    "fediar one view": case("fediar", mu_n=0.0, server_lr=1.0),
    "fediar printed": case("fediar", sample_view="printed"),
    "fediar mlp": case("fediar", scorer="mlp"),
    "fediar own scorer": case("fediar", scorer_start="own", private_budget_mb=0),
    "fediar organisations": case("fediar", {"clients": 7}),
    # autoencoders
    "fedvae": case("fedvae"),
    "fedvae frozen dense": case("fedvae", local_shared="frozen", gradients="dense"),
    "fedvae adam": case("fedvae", local_shared="adam", local_gradient="accumulated", server_optimizer="sgd"),
    "fedvae first round": case("fedvae", schedule="first-round", dropout=0.0),
    "feddae": case("feddae"),
    "feddae resting": case("feddae", {"participation": 0.5, "rest": True, "protocol": "paper-feddae"}),
    "feddae organisations": case("feddae", {"clients": 7}),
    "feddae mlp": case("feddae", gate="mlp"),
    "feddae fixed": case("feddae", gate="fixed", weight=0.3),
    "feddae fresh": case("feddae", local_encoder="fresh"),
    "feddae averaged": case("feddae", local_encoder="averaged", gate="mlp", local_shared="adam"),
    "feddae averaged accumulated": case("feddae", local_encoder="averaged", local_gradient="accumulated"),
    "feddae first round": case("feddae", schedule="first-round"),
    "feddae dense sgd": case("feddae", gradients="dense", server_optimizer="sgd", anneal=2),
    "feddae clip noise": case("feddae", clip=1.0, noise=0.001),
    "feddae alpha frozen": case("feddae", alpha=0.1, local_shared="frozen"),
    "feddae on disk": case("feddae", private_budget_mb=0),
    # item similarity
    "fedease": case("fedease"),
    "fedease noise dense": case("fedease", noise=0.001, upload_form="dense"),
    "fedease organisations": case("fedease", {"clients": 7}),
    "fedease users alike": case("fedease", scale="user"),
    "fedelsa": case("fedelsa"),
    "fedspectral": case("fedspectral"),
    "fedspectral ease": case("fedspectral", filter="ease", rank=0, balance=0.0, keep_diagonal=False, lam=500.0),
    "fedspectral ease balanced": case(
        "fedspectral", filter="ease", rank=0, balance=0.25, keep_diagonal=True, lam=500.0
    ),
    "fedspectral ease gathered": case("fedspectral", filter="ease", rank=16),
    "fedspectral own": case("fedspectral", {"clients": 7}, own=0.3),
    "fedspectral some": case("fedspectral", {"participation": 0.5}, shrink=0.0),
    "fedcia gfcf": case("fedcia", {"clients": 7}, form="full"),
    "fedcia gfcf truncated": case("fedcia", {"clients": 7}, form="truncated", rank=4),
    "fedcia gfcf normalised": case("fedcia", {"participation": 0.6}, global_filter="normalised"),
    "fedcia gfcf normalised truncated": case(
        "fedcia", {"clients": 7}, global_filter="normalised", form="truncated", rank=4
    ),
    "fedcia mf mse": case("fedcia", {"clients": 7}, backbone="mf", align="gradient", align_steps=5, align_loss="mse"),
    "fedcia gfcf alone": case("fedcia", {"clients": 7}, align="none"),
    "fedcia mf": case("fedcia", backbone="mf", lr=0.05, init_scale=0.1),
    "fedcia mf organisations": case("fedcia", {"clients": 7}, backbone="mf", lr=0.05, init_scale=0.1),
    "fedcia mf gradient": case("fedcia", {"clients": 7}, backbone="mf", align="gradient", align_steps=5),
    "fedcia mf truncated": case("fedcia", {"clients": 7}, backbone="mf", form="truncated", rank=3),
    "fedcia mf truncated gradient": case(
        "fedcia", {"clients": 7}, backbone="mf", form="truncated", rank=3, align="gradient", align_steps=5
    ),
    "fedcia mf alone": case("fedcia", {"clients": 7}, backbone="mf", align="none"),
    "fedcia lightgcn": case("fedcia", {"clients": 7}, backbone="lightgcn"),
    "fedcia mlp": case("fedcia", {"clients": 7}, backbone="mlp"),
    "fedcia mixed dims": case("fedcia", {"clients": 7}, backbone="mf", mixed="dims"),
    "fedcia mixed architectures": case("fedcia", {"clients": 7}, backbone="mf", mixed="architectures"),
    "fedcia within": case("fedcia", {"clients": 7}, mixed="architectures", aggregate="within"),
    "fedcia some": case("fedcia", {"clients": 7, "participation": 0.5, "protocol": "paper-fedcia"}, backbone="mf"),
}

THREADS_SHOW = {"recvae", "fedavg sasrec"}
"""Cases whose last bits depend on how many threads torch has (metrics and loss were still equal)."""

OTHER_MESSAGES = {
    "fedavg ncf",
    "fedavg clip gaussian",
    "fedavg int8",
    "fedavg lowrank",
    "fedavg topk rows float16",
    "fedavg some drop out",
    "fedavg resting",
    "fedavg organisations",
    "fedavg paper-fedca",
    "fedavg paper-feddae",
    "fedca some local",
    "fedca ncf",
    "fedca as coded",
    "fedca approximate",
    "fed3cr local",
    "fediar local",
    "feddae resting",
    "feddae averaged",
    "fedspectral own",
    "fedcia gfcf truncated",
    "fedcia mf",
    "fedcia mf truncated",
    "fedcia mixed architectures",
    "fedcia within",
}
"""Cases whose messages differ from those of the method's first case: they are deployed in every run of the tests."""


def deployed_always() -> set[str]:
    """The first case of every method, and those with other messages."""
    firsts: dict[str, str] = {}
    for name, one in CASES.items():
        firsts.setdefault(one.method, name)
    return set(firsts.values()) | OTHER_MESSAGES
