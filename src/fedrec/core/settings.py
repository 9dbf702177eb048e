"""Settings that several methods share, each with one name everywhere."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedrec.errors import BadInput, nearest, quoted

ODD_YAML = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What PyYAML raises, beside its own error, for a date that is none, a tag that does not fit, or endless nesting."""

FOLDER: dict[str, Any] = {"machine": "folder"}
"""Marks (``json_schema_extra``) a path on the machine that computes; nodes take none from a server."""
MEMORY: dict[str, Any] = {"machine": "memory"}
"""Marks memory (MiB) of the machine that computes; nodes bound it by what they give."""


def memory_before_disk(megabytes: int, what: str) -> Any:
    """The field of a budget for what many clients hold, beside one made by :func:`folder_on_disk`."""
    text = f"memory for {what}; what exceeds it lives on disk (memory-mapped)"
    return Field(megabytes, ge=0, description=text, json_schema_extra=MEMORY)


def folder_on_disk() -> Any:
    """The field of the folder for what exceeds a budget."""
    return Field(None, description="folder for that part [the system's temporary folder]", json_schema_extra=FOLDER)


class Settings(BaseModel):
    """Base of all settings: typed, frozen, every number finite, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class PrivacySettings(Settings):
    """What is done to an upload on its way out; the same for every federated method."""

    clip: float = Field(0.0, ge=0, description="largest norm of one client's upload; 0 does not clip")
    clip_norm: Literal["l2", "l1"] = Field("l2", description="the norm that `clip` bounds")
    noise: float = Field(0.0, ge=0, description="scale of the noise added to every coordinate; 0 adds none")
    noise_kind: Literal["laplace", "gaussian"] = Field("laplace", description="distribution of the noise")
    compress: Literal["none", "topk", "lowrank", "int8"] = Field("none", description="compression of the upload")
    compress_keep: float = Field(
        0.1, gt=0, le=1, description="share of coordinates (topk) or of the rank (lowrank) that is kept"
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="delta at which epsilon is reported")
    upload_form: Literal["dense", "rows"] = Field(
        "dense",
        description="how a table's changes cross the wire: whole tables (as the papers count bytes), or only "
        "changed rows; without noise both show which items a client has trained on",
    )
    precision: Literal["float16", "float32", "float64"] = Field("float32", description="number format on the wire")


class TrainingSettings(PrivacySettings):
    """How a client learns from its interactions."""

    dim: int = Field(16, ge=1, description="embedding dimension d (FedCA section 6.1: f = 16)")
    epochs: int = Field(10, ge=1, description="local epochs per round (E)")
    batch_size: int = Field(256, ge=1, description="mini-batch size (B)")
    lr: float = Field(0.01, gt=0, description="learning rate (eta)")
    optimizer: Literal["adam", "sgd"] = Field("adam", description="local optimiser, fresh each round")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient of network layers")
    negatives: int = Field(4, ge=1, description="negatives drawn for each positive, once per round (N)")
    objective: Literal["bce", "bpr"] = Field("bce", description="pointwise or pairwise loss")
    engine: Literal["auto", "kernel", "torch"] = Field(
        "auto", description="fused CPU kernel, batched torch, or whichever fits"
    )


def plain_value(text: str) -> Any:
    """The value that a word of the command line means: numbers, true, lists, else the text itself.

    >>> plain_value("1e-3"), plain_value("[32, 16]"), plain_value("adam")
    (0.001, [32, 16], 'adam')
    """
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, *ODD_YAML):
        value = text
    if isinstance(value, str):  # YAML 1.1 reads 1e-3 as text
        with suppress(ValueError):
            return float(text)
    return value


Chosen = TypeVar("Chosen", bound=BaseModel)


def build(kind: type[Chosen], given: dict[str, Any], owner: str) -> Chosen:
    """Settings from key-value pairs; a wrong key or value becomes one clear line.

    >>> build(TrainingSettings, {"dims": 8}, "fedavg")
    Traceback (most recent call last):
    fedrec.errors.BadInput: fedavg has no setting 'dims'; did you mean 'dim'?
    """
    for key in given:
        if key not in kind.model_fields:
            raise BadInput(f"{owner} has no setting {quoted(key, 60)}; {nearest(key[:60], kind.model_fields)}")
    try:
        return kind(**given)
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        meaning = kind.model_fields[key].description if key in kind.model_fields else None
        hint = f" ({key}: {meaning})" if meaning and meaning != key else ""
        message = str(first["msg"])[0].lower() + str(first["msg"])[1:]
        raise BadInput(f"{owner}: {key}={quoted(given.get(key))} is out of range: {message}{hint}") from None
