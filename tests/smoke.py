"""First steps with an installed fedrec, from a folder of its own: ``python tests/smoke.py [METHOD]``.

Needs nothing but the base install, no network and no checkout. ``make smoke`` runs it in a clean environment with the
wheel; ``tests/test_wheel.py`` in one that borrows the packages of the Python that runs the tests.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path


def fedrec(*words: str) -> str:
    """What ``python -m fedrec WORDS`` prints; ends this program where it fails."""
    return output([sys.executable, "-m", "fedrec", *words])


def output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    if done.returncode:
        sys.exit(f"smoke: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check(holds: object, what: str) -> None:
    if not holds:
        sys.exit(f"smoke: {what}")


def main(method: str = "fedavg") -> None:
    check(not os.environ.get("PYTHONPATH"), "PYTHONPATH is set: another fedrec could be the one that is tried")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("own.csv").write_text(
            "CustomerID,SKU,purchased_at\n"
            + "".join(f"c{u},s{(u * 7 + k * k) % 15},2026-01-{k + 1:02d}\n" for u in range(12) for k in range(6))
        )
        import fedrec as package

        check(Path(package.__file__).is_relative_to(sysconfig.get_path("purelib")), f"{package.__file__} was imported")
        check(package.__version__ == version("fedrec"), "the version of the module is not that of the package")
        script = Path(sysconfig.get_path("scripts")) / ("fedrec.exe" if os.name == "nt" else "fedrec")
        said = output([str(script), "--version"])
        check(said == fedrec("--version") == f"fedrec {package.__version__}\n", f"--version says {said!r}")
        from fedrec.data.sources import SOURCES
        from fedrec.recipes.published import PAPERS, find

        check("fedspectral" in package.methods() and len(package.methods()) > 30, "methods are missing")
        check("ml-100k" in SOURCES, "the sources of data are missing")
        check(all(find(paper).tables for paper in PAPERS), "the papers' tables are missing")
        where = ["--data", "own.csv", "--columns", "user=CustomerID,item=SKU,time=purchased_at"]
        fedrec("run", method, *where, "--rounds", "2", "--out", "run")
        first = fedrec("recommend", "run", "--user", "c3", "-k", "3")
        items = [one.item for one in package.open_run("run").recommend("c3", k=3)]
        check(len(items) == 3 and all(item in first for item in items), f"{first!r} and {items} are not the same")
        check("<table" in package.open_run("run")._repr_html_(), "a notebook would show no table")
        os.chdir("/")
    print(f"smoke: fedrec {package.__version__} works on Python {platform.python_version()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
