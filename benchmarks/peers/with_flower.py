"""Flower's simulation engine (ray) as a worker: a virtual node per client, its strategy ``FedAvg``, the naive loop.

A node trains with ``loop.py``: Flower brings the engine and the mean, not the training.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)  # ray's workers import what stands beside this file
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from loop import train_client
from talk import Array, read, requests

PATH = sys.argv[1]


def train(message: Message, context: Context) -> Message:
    """One client's local training, on a virtual node."""
    torch.set_num_threads(1)
    work = read(PATH)
    c = int(context.node_config["partition-id"])
    own = work.own(c)
    table = message.content.array_records["arrays"].to_numpy_ndarrays()[0]
    _, trained = train_client(
        work.users[c], table, work.item[own], work.label[own], work.order[:, own], work.batch, work.lr, work.optimizer
    )
    reply: Any = {"arrays": ArrayRecord([trained]), "metrics": MetricRecord({"num-examples": int(work.sizes[c])})}
    return Message(content=RecordDict(reply), reply_to=message)


def main(grid: Grid, context: Context) -> None:
    """The server: a round of Flower's own strategy for each request."""
    work = read(PATH)
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=work.clients, min_available_nodes=work.clients)

    def one_round() -> Array:
        found = strategy.start(grid, ArrayRecord([work.table]), num_rounds=1)
        return found.arrays.to_numpy_ndarrays()[0]

    for request in requests():
        request(one_round)


if __name__ == "__main__":
    server, client = ServerApp(), ClientApp()
    server.main()(main)
    client.train()(train)
    cores: Any = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=read(PATH).clients, backend_config=cores)
