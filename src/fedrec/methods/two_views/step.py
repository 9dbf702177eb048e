"""What one step of local training reads and changes: objective, parameters, mini-batch and interacted items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from fedrec.backbones.base import Backbone
    from fedrec.data.ragged import Int64
    from fedrec.learn.torch.optimisers import Dense
    from fedrec.methods.two_views.own_generators import OwnGenerators
    from fedrec.methods.two_views.rooms import Scratch

    Leaves: TypeAlias = dict[str, Tensor]
    """Parameters of the active clients: ``shared``, ``private``, ``users``, and the networks by name."""
    Loss: TypeAlias = Callable[["Leaves", "Batch", "Positives", "Objective", Backbone], tuple[Tensor, Tensor]]
    """A paper's plain objective: its sum over the active clients, and each sample's loss ``[active, width]``."""

Transfer = Literal["none", "consensus", "unified", "ace"]
Consistency = Literal["ranking", "ranking-printed", "similarity", "contrast"]
Complementarity = Literal["orthogonal", "l2", "mutual-information"]
Reduction = Literal["sum", "mean"]
Optimizer = Literal["sgd", "adam"]
RATES = ("lr", "lr_items", "lr_transfer")


@dataclass(frozen=True)
class Objective:
    """What a client minimises, and how fast: fields as in ``TwoViewSettings`` and ``FedRapSettings``, which say what
    each means; rates are those of this round."""

    transfer: Transfer = "none"
    length_scale: float = 10.0
    norm_floor: float = 0.1
    beta_a: float = 0.0
    beta_o: float = 0.0
    consistency: Consistency = "ranking"
    complementarity: Complementarity = "orthogonal"
    lambda_: float = 0.0
    mu: float = 0.0
    reduction: Reduction = "sum"
    lr: float = 0.1
    lr_items: float = 0.1
    shared_rate: float = 1.0
    """Rate of the shared table as a multiple of ``lr_items``: 0 where a phase of training keeps it."""
    private_rate: float = 1.0
    lr_transfer: float = 0.1
    optimizer: Optimizer = "sgd"
    decay_step: float = 1.0
    weight_decay: float = 0.0
    tolerance: float = 0.0
    epochs: int = 1
    batch_size: int = 2048

    def at_step(self, number: int) -> Objective:
        """With the rates of local step ``number`` (0, 1, ...)."""
        if self.decay_step == 1:
            return self
        slower = self.decay_step**number
        rates = {name: getattr(self, name) * slower for name in RATES}
        return replace(self, **rates)

    @property
    def enhanced(self) -> bool:
        """Whether any piece of Fed3CR's mechanism is on."""
        return self.transfer != "none" or bool(self.beta_a) or bool(self.beta_o)


@dataclass
class State:
    """A chunk's parameters on the device; a step changes them in place. Active clients are a prefix."""

    shared: Tensor  # [tables, m, d]
    private: Tensor  # [tables, m, d]
    place: Int64  # [clients] which of the tables are a client's
    users: Tensor  # [users, d]
    users_at: Int64  # [clients + 1] where each client's users begin
    networks: dict[str, Tensor]  # [clients, ...], the bias [users]
    client_of_user: Tensor  # int64 [users]
    scratch: Scratch
    generator: OwnGenerators | None = None
    """The closed form's; else its layers are among the networks."""
    optimisers: dict[str, Dense] = field(default_factory=dict)
    """Of each parameter, as torch's own gradients move it."""


@dataclass(frozen=True)
class Batch:
    """One mini-batch of each active client, padded; padding has weight 0, row 0 and the client's first user."""

    active: int
    users: int
    """Users of the active clients."""
    rows: Tensor  # int64 [active, width] item
    flat: Tensor  # int64 [active * width] row in the stacked tables
    owner: Tensor  # int64 [active, width] user
    label: Tensor  # [active, width]
    weight: Tensor  # [active, width]
    inside: Tensor  # bool [active, width]

    def of(self, table: Tensor) -> Tensor:
        """Rows ``[active, width, d]`` of a stacked table ``[active, m, d]``."""
        return table.reshape(-1, table.shape[-1]).index_select(0, self.flat).view(*self.rows.shape, -1)


@dataclass(frozen=True)
class Positives:
    """Interacted items of each client, for prototypes (Fed3CR, Eq. 10), padded with weight 0."""

    flat: Tensor  # int64 [clients, most] row in the stacked tables
    weight: Tensor  # [clients, most] 1 / count

    def mean(self, table: Tensor, active: int) -> Tensor:
        """Prototypes ``[active, 1, d]`` of a stacked table ``[clients, m, d]``."""
        flat = self.flat[:active]
        rows = table.view(-1, table.shape[-1]).index_select(0, flat.reshape(-1)).view(*flat.shape, -1)
        return self.weight[:active, None] @ rows


def recommendation(fused: Tensor, own: Leaves, batch: Batch, backbone: Backbone) -> Tensor:
    """Binary cross-entropy ``[active, width]`` of the scores that the mini-batch's items have in fused tables."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    items, owner = batch.of(fused), batch.owner.view(-1)
    people = own["users"].index_select(0, owner).view_as(items)
    other = ("shared", "private", "users", "bias")
    layers = {name: value for name, value in own.items() if name not in other and not name.startswith("transfer_")}
    if "bias" in own:
        layers["bias"] = own["bias"].index_select(0, owner).view(batch.rows.shape)
    logit = backbone.score(people, items, layers)
    return binary_cross_entropy_with_logits(logit, batch.label, reduction="none")
