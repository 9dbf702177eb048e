"""The cache of compiled kernels: what a kernel takes from other files is noticed when it changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedrec import compiled

KERNEL = """
{where}
from kernels.helper import FACTOR
from kernels.inner.part import inlined

@njit(cache=True)
def kernel(x):
    return FACTOR * inlined(x)
"""
HELPER = "FACTOR = {factor}\n"
PART = "from fedrec.compiled import njit\n\n\n@njit(inline='always')\ndef inlined(x):\n    return x + {more}\n"
OURS, NUMBAS = "from fedrec.compiled import njit", "from numba import njit"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "kernels" / "inner").mkdir(parents=True)
    for folder in ("kernels", "kernels/inner"):
        (tmp_path / folder / "__init__.py").touch()
    write(tmp_path)
    return tmp_path


def write(package: Path, where: str = OURS, factor: int = 10, more: int = 1) -> None:
    files = {
        "kernel.py": KERNEL.format(where=where),
        "helper.py": HELPER.format(factor=factor),
        "inner/part.py": PART.format(more=more),
    }
    for name, content in files.items():
        path = package / "kernels" / name
        if not path.is_file() or path.read_text() != content:  # what is unchanged keeps its time
            path.write_text(content)


def answer(package: Path) -> tuple[int, int]:
    """What the kernel gives in a new process, and how often it came out of the cache."""
    code = (
        "from kernels.kernel import kernel\n"
        "print(kernel(2), sum(kernel.stats.cache_hits.values()))"
    )  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    value, hits = done.stdout.split()
    return int(value), int(hits)


def test_a_change_in_another_file_is_noticed(package: Path) -> None:
    assert answer(package) == (30, 0)
    assert answer(package) == (30, 1)  # it is cached
    write(package, factor=100)
    assert answer(package) == (300, 0)
    write(package, factor=100, more=5)  # a helper that is compiled into it, one folder down
    assert answer(package) == (700, 0)
    assert answer(package) == (700, 1)


def test_numba_alone_would_not_notice(package: Path) -> None:
    """Why :mod:`fedrec.compiled` exists; where this fails, numba has learnt it and the module can go."""
    write(package, where=NUMBAS)
    assert answer(package) == (30, 0)
    write(package, where=NUMBAS, factor=100)
    assert answer(package) == (30, 1)


def test_only_our_kernels_are_cached_in_our_way() -> None:
    config = compiled.config
    before = config.CACHE_LOCATOR_CLASSES

    @compiled.njit(cache=True)
    def doubled(x: float) -> float:
        return 2 * x

    assert before == config.CACHE_LOCATOR_CLASSES
    assert isinstance(doubled._cache._impl.locator, compiled.InTree | compiled.UserProvided | compiled.UserWide)


def nowhere(self: Any) -> None:
    raise PermissionError("read-only")


def test_a_kernel_runs_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation and a user without a home: kernels were refused, and nothing could be trained."""
    for kind in compiled.KINDS:
        monkeypatch.setattr(kind, "ensure_cache_path", nowhere)
    assert compiled.kept_in() is None

    @compiled.njit(cache=True)
    def doubled(x: float) -> float:
        return 2 * x

    assert doubled(4.0) == 8.0
    assert doubled._cache.cache_path is None


def test_nothing_is_kept_in_the_folder_that_we_happen_to_be_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a user has no home, numba's own place is one named ``~`` below it, and others may have written there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert compiled.KINDS[-1].from_function(nowhere, __file__) is None
    assert list(tmp_path.iterdir()) == []


def test_where_kernels_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.config, "CACHE_DIR", str(tmp_path))
    kept = compiled.kept_in()
    assert kept is not None
    assert kept.parent == tmp_path


@pytest.mark.parametrize(
    ("liberties", "inlined"),
    [(False, False), (True, True), ({"contract"}, False), ({"contract", "reassoc"}, True), (("reassoc",), True)],
)
def test_what_may_be_reordered_becomes_part_of_its_caller(liberties: Any, inlined: bool) -> None:
    @compiled.njit(fastmath=liberties)
    def doubled(x: float) -> float:
        return 2 * x

    assert doubled.targetoptions["forceinline"] is inlined


def test_the_stamp_covers_what_a_kernel_imports() -> None:
    import fedrec.privacy.noise_kernel  # noqa: F401

    source = Path(compiled.__file__).read_bytes()
    assert set(compiled.imported(b"from fedrec.learn import shuffle\nimport fedrec.keyed, os", "fedrec")) == {
        "fedrec.learn",
        "fedrec.learn.shuffle",
        "fedrec.keyed",
    }
    assert not set(compiled.imported(source, "fedrec"))
    lazy = b"if TYPE_CHECKING:\n    import fedrec.a\nelse:\n    import fedrec.b\ndef f():\n    import fedrec.c\n"
    nested = b"class K:\n    try:\n        import fedrec.d\n    except ImportError:\n        from fedrec import e\n"
    assert set(compiled.imported(lazy + nested, "fedrec")) == {"fedrec.b", "fedrec.d", "fedrec", "fedrec.e"}
    assert compiled.sources_stamp("fedrec.privacy.noise_kernel") != compiled.sources_stamp("fedrec.keyed")


@pytest.mark.slow
def test_the_process_that_compiles_gives_what_later_ones_give(tmp_path: Path) -> None:
    """Fed3CR's kernel calls functions whose sums may be reordered; they must be the same code in both processes."""
    golden = Path(__file__).parents[2] / "golden"
    code = (
        "from golden_cases import CASES\n"
        "from golden_figures import simulated\n"
        "print(simulated(CASES['fed3cr local']))"
    )  # fmt: skip
    path = os.pathsep.join([str(golden), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, later = (
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == later
