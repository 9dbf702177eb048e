"""What ``/metrics`` says, in the text format of Prometheus. No user, item or history is among it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of answer times, in seconds."""


class Counts:
    """Counters of one service."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.within = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0
        self.batches = 0
        self.asks = 0
        self.loaded = 1

    def request(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.within[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def batch(self, asks: int) -> None:
        self.batches += 1
        self.asks += asks

    def text(self, waiting: int, about: dict[str, object]) -> str:
        labels = ",".join(f'{key}="{_quoted(str(value))}"' for key, value in about.items())
        lines = _head("fedrec_requests_total", "counter", "Requests by route and status.")
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'fedrec_requests_total{{route="{_quoted(route)}",status="{status}"}} {count}')
        lines += _head("fedrec_request_seconds", "histogram", "Time to answer.")
        total = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.within, strict=True):
            total += count
            lines.append(f'fedrec_request_seconds_bucket{{le="{bound}"}} {total}')
        lines += [f"fedrec_request_seconds_sum {self.seconds:.6f}", f"fedrec_request_seconds_count {total}"]
        for name, kind, about_it, value in (
            ("fedrec_batches_total", "counter", "Times that asks were answered together.", self.batches),
            ("fedrec_asks_total", "counter", "Lists that were asked for.", self.asks),
            ("fedrec_waiting", "gauge", "Asks that wait.", waiting),
            ("fedrec_models_loaded_total", "counter", "Models opened since the start.", self.loaded),
        ):
            lines += [*_head(name, kind, about_it), f"{name} {value}"]
        lines += [*_head("fedrec_model", "gauge", "The model that serves."), f"fedrec_model{{{labels}}} 1"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
