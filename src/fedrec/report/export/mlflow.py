"""MLflow: a run of the experiment ``fedrec``; exported again, the same run goes on."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from fedrec.errors import BadInput
from fedrec.extras import missing
from fedrec.report.export.history import Numbers
from fedrec.runs.settings import RunSettings

EXPERIMENT = "fedrec"
KEY, ROUND = "fedrec.key", "fedrec.round"
LONGEST = 500
"""Letters of a parameter's value, as all stores take them."""


class Mlflow:
    """Parameters, metrics and tags at a tracking URI."""

    def __init__(self, uri: str) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # a server that is away is known soon
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        try:
            from mlflow.entities import Metric, Param
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise BadInput("--mlflow needs another package: pip install 'fedrec[mlflow]'") from None
        self.metric, self.param = Metric, Param
        try:
            self.client: Any = MlflowClient(uri)
            known = self.client.get_experiment_by_name(EXPERIMENT)
            self.experiment = known.experiment_id if known else self.client.create_experiment(EXPERIMENT)
        except Exception as problem:
            lack = missing(problem) if isinstance(problem, ModuleNotFoundError) else None
            if lack is not None:  # what a store needs is imported with the first use of it
                raise lack from None
            why = " ".join(str(problem).split())[:200]
            raise BadInput(f"--mlflow {uri} cannot be used: {why}") from None
        self.run = ""
        self.began = 0
        self.finished = False

    def begin(self, name: str, key: str, settings: RunSettings) -> int:
        found = self.client.search_runs([self.experiment], f"tags.`{KEY}` = '{key}'", max_results=1)
        if found:
            self.run, self.began = found[0].info.run_id, found[0].info.start_time
            self.client.update_run(self.run, status="RUNNING")
            return int(found[0].data.tags.get(ROUND, 0))
        self.began = int(1000 * time.time())
        made = self.client.create_run(self.experiment, start_time=self.began, run_name=name, tags={KEY: key})
        self.run = made.info.run_id
        plain = settings.model_dump(mode="json", exclude={"data_dir", "settings"}, exclude_none=True)
        plain |= {f"settings.{name}": value for name, value in settings.settings.items()}
        params = [self.param(_allowed(name), str(value)[:LONGEST]) for name, value in plain.items()]
        self.client.log_batch(self.run, params=params[:100])
        return 0

    def round(self, number: int, seconds: float, values: Numbers) -> None:
        self._log(number, self.began + int(1000 * seconds), values)
        self.client.set_tag(self.run, ROUND, str(number))

    def end(self, number: int, values: Numbers) -> None:
        self._log(number, int(1000 * time.time()), values)
        self.client.set_tag(self.run, "selected round", str(number))
        self.finished = True

    def close(self) -> None:
        if self.run:
            self.client.set_terminated(self.run, "FINISHED" if self.finished else "KILLED")

    def _log(self, number: int, when: int, values: Numbers) -> None:
        metrics = [self.metric(_allowed(name), value, when, number) for name, value in values.items()]
        self.client.log_batch(self.run, metrics=metrics)


def _allowed(name: str) -> str:
    """MLflow takes neither @ nor ! in a name; and where names are files, ``HR_at_10`` cannot be a folder too.

    >>> _allowed("valid/HR@10"), _allowed("valid/HR@10/99"), _allowed("valid/MRR@10!")
    ('valid/HR_at_10', 'valid/HR_at_10_99', 'valid/MRR_at_10_published')
    """
    return re.sub(r"@(\d+)/", r"@\1_", name).replace("@", "_at_").replace("!", "_published")
