"""The files of a run's folder.

settings.yaml            all that defines the run
data.json                a fingerprint of the data: counts, and a digest of each part
rounds.jsonl             one line a round: loss, metrics, seconds, bytes
checkpoint.safetensors   where it stands, while it runs
model.safetensors        state of the selected round, for recommendations
data.safetensors         ids, titles and what users have, so that the model recommends without its data
users.parquet            test metrics of every user at the selected round (users.csv where pyarrow is missing)
manifest.json            size and checksum of each file of a finished run
origin.json              which run this one goes on from, where it is an update
federation.json          a federated run's job, and catalogue.txt the public items: :mod:`fedrec.deploy.server.job`
result.json              the object that --json writes; its presence means the run is finished
"""

from __future__ import annotations

from fedrec.runs.origin import ORIGIN

CHECKPOINT, KNOWN, MODEL = "checkpoint.safetensors", "data.safetensors", "model.safetensors"
DATA, RESULT, ROUNDS, SETTINGS = "data.json", "result.json", "rounds.jsonl", "settings.yaml"
JOB, CATALOGUE = "federation.json", "catalogue.txt"
USERS, USERS_PLAIN = "users.parquet", "users.csv"

FIRST = (ORIGIN, CHECKPOINT, DATA, JOB, CATALOGUE)
"""What is written before the settings, which make a folder a run's."""
