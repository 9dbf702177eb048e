"""Seconds of FedDAE's local work beside a plain loop over clients, in the same run.

    python benchmarks/feddae.py                       # as large as ML-100K, on the CPU
    python benchmarks/feddae.py --loop-clients 8      # the loop on a sample of clients, scaled up
    python benchmarks/feddae.py --device cuda --loop-clients 16
    python benchmarks/feddae.py --world ml-1m --device cuda --loop-clients 0

The world is random, with the sizes of the data set. Both sides do the same: E epochs of every user, Adam on
private parts, plain descent on copies of the shared layers, gradients accumulated. numpy and torch suffice on a
CUDA device (numba on the CPU). Times are this machine's; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch

from fedrec.backbones.vae import SHARED, Bags, Sizes, fresh_decoder, fresh_encoder, to_device
from fedrec.methods.vae.client_update import train_chunk
from fedrec.methods.vae.feddae import objective
from fedrec.methods.vae.own_encoder import PrivateParts
from fedrec.methods.vae.plan import LocalPlan

WORLDS = {"ml-100k": (943, 1682, 105), "ml-1m": (6040, 3706, 164), "tiny": (20, 200, 15)}
"""Users, items, training interactions a user."""


class Setting:
    """A random world and the state of all its users."""

    def __init__(self, world: str, dim: int, epochs: int, device: str) -> None:
        self.users, self.items, mean = WORLDS[world]
        rng = np.random.default_rng(0)
        self.sizes, self.device, self.epochs = Sizes(self.items, dim), device, epochs
        counts = np.clip(rng.lognormal(np.log(mean) - 0.4, 0.9, self.users).astype(int), 8, self.items // 2)
        self.start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.ids = np.concatenate([rng.choice(self.items, count, replace=False) for count in counts])
        value = np.repeat(1 / np.sqrt(counts), counts)[:, None]
        self.values = (2 * value * (rng.random((len(self.ids), epochs)) > 0.5)).astype(np.float32)
        self.noise = rng.normal(size=(self.users, epochs, dim)).astype(np.float32)
        self.nets = to_device({**fresh_encoder(rng, self.sizes), **fresh_decoder(rng, self.sizes)}, device)
        self.plan = LocalPlan(epochs, 1e-3, "descent", 0.5, "linear", 0.5, 1e-3 / self.users)
        self.encoder = fresh_encoder(rng, self.sizes)

    def private(self, first: int, last: int) -> PrivateParts:
        """Private parts of some users."""
        users, inside = last - first, slice(self.start[first], self.start[last])
        ids, wide = self.ids[inside], self.sizes.wide
        repeat = {name: np.repeat(self.encoder[name][None], users, 0) for name in ("encoder_mid", "encoder_out")}
        return PrivateParts(
            self.encoder["items_in"][ids],
            np.zeros((users, wide), np.float32),
            repeat["encoder_mid"],
            repeat["encoder_out"],
            np.zeros((len(ids), 2), np.float32),
            np.zeros((users, 0), np.float32),
            np.zeros((users, 0, 2), np.float32),
        )

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def blocks(setting: Setting, users: int, chunk: int) -> tuple[float, float]:
    """Seconds for some users in chunks, and the loss of the last epoch; making private state is not timed."""
    seconds = loss = 0.0
    for first in range(0, users, chunk):
        last = min(first + chunk, users)
        inside = slice(setting.start[first], setting.start[last])
        parts = setting.private(first, last)
        setting.wait()
        began = time.perf_counter()
        bags = Bags(setting.start[first : last + 1] - setting.start[first], setting.ids[inside], setting.device)
        values = torch.from_numpy(setting.values[inside]).to(setting.device)
        noise = torch.from_numpy(setting.noise[first:last]).to(setting.device)
        made = train_chunk(setting.nets, parts, bags, values, noise, setting.plan)
        loss += float(made.loss.sum())
        setting.wait()
        seconds += time.perf_counter() - began
    return seconds, loss / users


def loop(setting: Setting, users: int) -> tuple[float, float]:
    """The same with autograd, one client after the other, each with copies of the shared layers."""
    seconds = loss = 0.0
    plan = setting.plan
    for user in range(users):
        inside = slice(setting.start[user], setting.start[user + 1])
        parts = setting.private(user, user + 1)
        setting.wait()
        began = time.perf_counter()
        items = torch.from_numpy(setting.ids[inside]).to(setting.device)
        values = torch.from_numpy(setting.values[inside]).to(setting.device)
        noise = torch.from_numpy(setting.noise[user]).to(setting.device)
        shared = {name: setting.nets[name].clone().requires_grad_() for name in SHARED}
        arrays = {"rows": parts.rows, "gate_rows": parts.gate_rows}
        arrays |= {n: getattr(parts, n)[0] for n in ("bias", "mid", "out")}
        own = {n: torch.from_numpy(array).to(setting.device).requires_grad_() for n, array in arrays.items()}
        descent = torch.optim.SGD(shared.values(), lr=plan.shared_rate)
        adam = torch.optim.Adam(own.values(), lr=plan.rate)
        total = {name: torch.zeros_like(array) for name, array in shared.items()}
        for epoch in range(plan.epochs):
            descent.zero_grad()
            adam.zero_grad()
            value = objective(shared, own, items, values[:, epoch], noise[epoch], plan)
            torch.autograd.backward(value)
            for name, array in shared.items():
                assert array.grad is not None
                total[name] += array.grad
            descent.step()
            adam.step()
        loss += float(value.detach())
        setting.wait()
        seconds += time.perf_counter() - began
    return seconds, loss / max(1, users)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=WORLDS, default="ml-100k")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--chunk", type=int, default=0, help="users at once [64 on the CPU, 512 on CUDA]")
    parser.add_argument("--users", type=int, default=0, help="users that train in chunks [all]")
    parser.add_argument("--loop-clients", type=int, default=-1, help="clients that the plain loop does [all]")
    given = parser.parse_args()
    setting = Setting(given.world, given.dim, given.epochs, given.device)
    chunk = given.chunk or (64 if given.device == "cpu" else 512)
    users = given.users or setting.users
    blocks(setting, min(8, users), chunk)  # compile and warm up
    busy = time.process_time()
    fast, loss = blocks(setting, users, chunk)
    busy = time.process_time() - busy
    print(f"{given.world} on {given.device}: {users} users, {given.epochs} epochs, d={given.dim}")
    print(f"chunks of {chunk}: {fast:.2f} s, {1000 * fast / users:.2f} ms a client (loss {loss:.2f})")
    print(f"  {busy:.2f} s of processor time")
    few = users if given.loop_clients < 0 else min(given.loop_clients, users)
    if few:
        loop(setting, 1)
        slow, loss = loop(setting, few)
        print(f"loop over {few} clients: {slow:.2f} s, {1000 * slow / few:.2f} ms a client (loss {loss:.2f})")
        print(f"ratio per client: {(slow / few) / (fast / users):.1f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", end="")
    print(f", on the device {torch.cuda.max_memory_allocated() / 2**20:.0f} MB" if given.device == "cuda" else "")


if __name__ == "__main__":
    main()
