"""A large CSV as a shop exports it, loaded and described by the command line: seconds.

python benchmarks/intake.py [ROWS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd


def main(rows: int = 1_000_000) -> None:
    """Write the file, describe it as a person would, say how long it took."""
    rng = np.random.default_rng(0)
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 600 * 86400, rows), unit="s")
    table = pd.DataFrame(
        {
            "CustomerID": [f"customer-{number}" for number in rng.integers(0, rows // 20, rows)],
            "SKU": [f"sku-{number}" for number in (10_000 * rng.random(rows) ** 3).astype(int)],
            "purchased_at": times.strftime("%d.%m.%Y %H:%M:%S"),
            "amount": rng.integers(1, 100, rows),
        }
    )
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "shop.csv"
        table.to_csv(path, index=False)
        command = [sys.executable, "-m", "fedrec", "data", "describe", str(path)]
        began = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        print(done.stdout)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        size, cpu = path.stat().st_size / (1 << 20), used.ru_utime + used.ru_stime
        print(f"{rows} rows, {size:.0f} MiB: loaded and described in {seconds:.1f} s ({cpu:.1f} s of processors)")


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:2]))
