"""The wheel and the source archive as they would be published: all of the package, nothing else, and it works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = "Scripts/python.exe" if os.name == "nt" else "bin/python"


def call(*command: object, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["NUMBA_DISABLE_JIT"] = "1"  # a new place has no compiled kernels, and compiling them takes most of a minute
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=3600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives, made from a copy of what goes into them and of what must not."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, copy)
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=unwanted)
    for stranger in ("tests/test_stranger.py", "benchmarks/leaderboard.tar.xz", "data/u.data", "docs/index.md"):
        (copy / stranger).parent.mkdir(parents=True, exist_ok=True)
        (copy / stranger).touch()
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy, cwd=copy)
    return out


def sources() -> set[str]:
    files = (ROOT / "src" / "fedrec").rglob("*")
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_nothing_else(made: Path) -> None:
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == sources()


def test_the_source_archive_holds_the_package_and_nothing_else(made: Path) -> None:
    (archive,) = made.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames() if opened.getmember(name).isfile()}
    whole = {f"src/{name}" for name in sources()} | {"pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"}
    assert {name for name in names if ".egg-info/" not in name} - {"PKG-INFO", "setup.cfg"} == whole


def test_the_wheel_works_in_an_environment_of_its_own(made: Path, tmp_path: Path) -> None:
    """Without this checkout; the packages that it needs are those of the Python that runs the tests."""
    (wheel,) = made.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / PYTHON
    place = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel]
    call(*pip, cwd=tmp_path)
    (place / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")  # a path alone: no editable install
    said = call(python, ROOT / "tests" / "smoke.py", "fedease", cwd=tmp_path)
    assert "works on Python" in said
