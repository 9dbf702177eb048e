"""The centralised references under `strict` on every data set at hand: the table in the README.

    python benchmarks/references.py [DATA ...]

Where the data has no times the held-out items are drawn, so the figures are means over forty seeds, with their
spread behind them: one draw of FilmTrust's 1,002 users is off by 0.01 as often as not, and five seeds still by 0.005.
Elsewhere the split is fixed and one seed says all but the sampled candidates.
"""

from __future__ import annotations

import statistics
import sys

import fedrec
from fedrec.data.load import load
from fedrec.errors import BadInput

DATA = ("ml-100k", "filmtrust", "ml-1m", "douban-book")
METHODS = ("popularity", "gfcf", "ease")
DRAWS = 40
METRICS = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10", "HR@20")


def main(names: tuple[str, ...]) -> None:
    """Print one Markdown table."""
    print("| data | seeds | model | " + " | ".join(METRICS) + " |")
    print("| --- " * (len(METRICS) + 3) + "|")
    for name in names:
        try:
            data = load(name)
        except BadInput as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            continue
        seeds = range(1) if data.times is not None or data.part is not None else range(DRAWS)
        for method in METHODS:
            runs = [fedrec.run(method, data=name, seed=seed).metrics for seed in seeds]
            cells = " | ".join(cell([run[metric] for run in runs]) for metric in METRICS)
            print(f"| {name} | {len(seeds)} | {method} | {cells} |", flush=True)


def cell(values: list[float]) -> str:
    """Mean, and spread where there are several."""
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or DATA)
