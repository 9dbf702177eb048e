"""All that defines a run, as one typed value that is written beside its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fedrec.core.settings import Settings


class RunSettings(Settings):
    """One training: method, data, protocol and how it is carried out."""

    method: str = Field(description="name of the method (see `fedrec methods`)")
    data: str = Field("demo", description="registry name, synthetic world, file or folder")
    data_dir: Path | None = Field(None, description="where data sets lie ($FEDREC_DATA, then the cache folder)")
    protocol: str = Field("strict", description="how the model is judged")
    rounds: int = Field(100, ge=1, lt=1 << 31, description="rounds (steps, for a centralised reference)")
    seed: int = Field(0, ge=0, lt=1 << 64, description="seed of everything that is drawn")
    participation: float = Field(1.0, description="share of clients that take part in a round")
    rest: bool = Field(False, description="nobody takes part twice in a row (FedDAE)")
    dropout: float = Field(0.0, description="probability that a chosen client does not answer")
    min_interactions: int | None = Field(None, ge=1, description="drop users with fewer interactions")
    columns: str | None = Field(None, description="which column of an own file means what: user=NAME,item=NAME")
    min_rating: float | None = Field(None, description="rows with a lower rating are no interactions [0 or less]")
    train_share: float = Field(
        1.0, gt=0, le=1, description="learn from a random share of each user's training interactions"
    )
    clients: int | None = Field(None, ge=1, description="spread users over this many clients (one each by default)")
    device: Literal["cpu", "cuda"] = Field("cpu", description="where torch computes")
    runtime: Literal["simulate", "flower"] = Field("simulate", description="in process, or over Flower")
    nodes: int = Field(2, ge=1, description="SuperNodes that `--runtime flower` starts")
    evaluate_every: int = Field(1, ge=1, description="judge every so many rounds")
    patience: int | None = Field(
        None, ge=1, description="stop after so many judged rounds without a better value [the protocol's own rule]"
    )
    settle: float = Field(
        0.0, ge=0, lt=1, description="stop when the loss changes by less than this share of it from round to round"
    )
    evaluate_users: int | None = Field(None, ge=1, description="judge a keyed sample of users only")
    memory_mb: int = Field(1024, ge=16, description="working memory that blocks are sized for")
    checkpoint_seconds: float = Field(10.0, ge=0, description="least time between two checkpoints")
    keep_selected: bool = Field(True, description="keep the selected model, for `fedrec recommend`")
    settings: dict[str, Any] = Field(default_factory=dict, description="the method's own settings")
