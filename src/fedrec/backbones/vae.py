"""The variational autoencoders of the FedDAE paper: sizes, start values, and the maths between the layers.

Encoder m - 3d - 2d - 2 x d (mean and log variance), decoder d - 2d - 3d - m, tanh between (three layers and
d = 256 in the paper: m - 768 - 512 - 256). A layer is one array ``[in + 1, out]`` whose last row is the bias;
the first layer, which reads items, keeps its table ``[m, 3d]`` and its bias apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Float32

if TYPE_CHECKING:
    import torch

SHARED = ("items_in", "bias_in", "encoder_mid", "encoder_out", "decoder_in", "decoder_mid", "decoder_out")
"""Names of the shared arrays: the global encoder phi (four), then the decoder theta (three)."""

OWN = {"items_in": "own_items_in", "bias_in": "own_bias_in", "encoder_mid": "own_mid", "encoder_out": "own_out"}
"""Names of an encoder's arrays where they are a user's own."""


@dataclass(frozen=True)
class Sizes:
    """Widths of the layers."""

    n_items: int
    dim: int
    """d: width of the latent variable (the paper's k in Eq. 4, 256 in its experiments)."""

    @property
    def wide(self) -> int:
        return 3 * self.dim

    @property
    def narrow(self) -> int:
        return 2 * self.dim

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the shared arrays."""
        m, wide, narrow, d = self.n_items, self.wide, self.narrow, self.dim
        return {
            "items_in": (m, wide),
            "bias_in": (wide,),
            "encoder_mid": (wide + 1, narrow),
            "encoder_out": (narrow + 1, 2 * d),
            "decoder_in": (d + 1, narrow),
            "decoder_mid": (narrow + 1, wide),
            "decoder_out": (wide + 1, m),
        }

    @property
    def numbers(self) -> int:
        """How many numbers the shared arrays have."""
        return sum(int(np.prod(shape)) for shape in self.shapes().values())


def glorot(generator: np.random.Generator, shape: tuple[int, int]) -> Float32:
    """A fresh weight matrix ``[in, out]`` (Glorot's uniform, as Mult-VAE)."""
    limit = float(np.sqrt(6.0 / max(1, shape[0] + shape[1])))
    return generator.uniform(-limit, limit, shape).astype(np.float32)


def fresh_layer(generator: np.random.Generator, width_in: int, width_out: int) -> Float32:
    """A fresh layer ``[in + 1, out]`` with a bias of zero."""
    layer = np.zeros((width_in + 1, width_out), np.float32)
    layer[:-1] = glorot(generator, (width_in, width_out))
    return layer


def fresh_encoder(generator: np.random.Generator, sizes: Sizes) -> dict[str, Float32]:
    """The four arrays of a fresh encoder, in the order of :data:`SHARED`."""
    return {
        "items_in": glorot(generator, (sizes.n_items, sizes.wide)),
        "bias_in": np.zeros(sizes.wide, np.float32),
        "encoder_mid": fresh_layer(generator, sizes.wide, sizes.narrow),
        "encoder_out": fresh_layer(generator, sizes.narrow, 2 * sizes.dim),
    }


def fresh_decoder(generator: np.random.Generator, sizes: Sizes) -> dict[str, Float32]:
    """The three arrays of a fresh decoder."""
    return {
        "decoder_in": fresh_layer(generator, sizes.dim, sizes.narrow),
        "decoder_mid": fresh_layer(generator, sizes.narrow, sizes.wide),
        "decoder_out": fresh_layer(generator, sizes.wide, sizes.n_items),
    }


def affine(values: torch.Tensor, layer: torch.Tensor) -> torch.Tensor:
    """``[users, in] -> [users, out]`` through a layer ``[in + 1, out]``."""
    import torch

    return torch.addmm(layer[-1], values, layer[:-1])


def decode(latent: torch.Tensor, layers: dict[str, torch.Tensor]) -> torch.Tensor:
    """Logits of all items, Eq. (2) before its softmax: ``[users, d] -> [users, m]``."""
    hidden = affine(latent, layers["decoder_in"]).tanh()
    return affine(affine(hidden, layers["decoder_mid"]).tanh(), layers["decoder_out"])


def encode(bags: Bags, layers: dict[str, torch.Tensor], values: torch.Tensor) -> torch.Tensor:
    """Mean and log variance side by side ``[users, 2 d]`` from sparse inputs."""
    hidden = (bags.read(layers["items_in"], values) + layers["bias_in"]).tanh()
    return affine(affine(hidden, layers["encoder_mid"]).tanh(), layers["encoder_out"])


class Bags:
    """The items of some users, as a sparse matrix with one row a user that is never expanded."""

    def __init__(self, start: NDArray[np.int64], ids: NDArray[np.integer], device: str) -> None:
        import torch

        self.users = len(start) - 1
        self.start = start
        self.offsets = torch.from_numpy(np.ascontiguousarray(start[:-1])).to(device)
        self.ids = torch.from_numpy(np.ascontiguousarray(ids, np.int64)).to(device)
        owners = np.repeat(np.arange(self.users), np.diff(start))
        self.owners = torch.from_numpy(owners).to(device)  # [interactions]
        self.counts = torch.from_numpy(np.diff(start).astype(np.float32)).to(device)  # [users]

    def read(self, table: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Row ``u`` is the sum over u's items of ``value * table[item]``: ``[users, width]``."""
        from torch.nn.functional import embedding_bag

        if not len(self.ids):
            return table.new_zeros((self.users, table.shape[1]))
        return embedding_bag(self.ids, table, self.offsets, mode="sum", per_sample_weights=values)

    def add_up(self, values: torch.Tensor) -> torch.Tensor:
        """Sums over each user's items: ``[interactions, ...] -> [users, ...]``."""
        total = values.new_zeros((self.users, *values.shape[1:]))
        return total.index_add_(0, self.owners, values)


def combined(first: torch.Tensor, second: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of ``w_1 X + w_2 Y`` for independent Gaussians X and Y (Lemma 1, Eq. 5).

    ``first`` and ``second`` are ``[users, 2 d]``, mean and log variance side by side; ``weights`` is
    ``[users, 2]``.
    """
    d = first.shape[1] // 2
    w_1, w_2 = weights[:, :1], weights[:, 1:]
    mean = w_1 * first[:, :d] + w_2 * second[:, :d]
    variance = w_1**2 * first[:, d:].exp() + w_2**2 * second[:, d:].exp()
    return mean, variance


def divergence(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """``KL(N(mean, variance) || N(0, I))`` of each user ``[users]``, the prior matching of Eq. (6)."""
    return 0.5 * (mean**2 + variance - 1.0 - variance.log()).sum(1)


def to_device(arrays: dict[str, Any], device: str) -> dict[str, torch.Tensor]:
    """Arrays as tensors (without a copy on the CPU)."""
    import torch

    return {name: torch.from_numpy(np.asarray(array)).to(device) for name, array in arrays.items()}
