"""The tree and its one-way rule (``tests/house.py``), held against our sources; and what must stay light."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from fedrec.extras import EXTRAS
from house import AT_THE_TOP, LAYERS, Tree, circles, imports, violations

SOURCE = Path(__file__).parent.parent / "src" / "fedrec"


def test_the_house_keeps_its_rules() -> None:
    assert violations(SOURCE) == []


@cache
def our_tree() -> Tree:
    return Tree(SOURCE)


def test_the_rules_see_the_whole_house() -> None:
    tree = our_tree()
    assert len(tree.files) > 250
    graph = tree.graph()
    assert "fedrec.keyed" in graph["fedrec.core.method"]  # `from fedrec import keyed`
    assert "fedrec.cli.progress" in graph["fedrec.cli.run"]  # inside a function
    assert {"experiment", "runs", "report"} <= frozenset().union(*LAYERS)
    assert {path.stem for path in SOURCE.glob("*.py")} == AT_THE_TOP


KEPT = {
    "__init__.py": "",
    "errors.py": "",
    "keyed.py": "",
    "data/load.py": "from fedrec import keyed\nfrom fedrec.errors import BadInput",
    "core/method.py": "import numpy\nfrom fedrec.data import load",
    "methods/family/__init__.py": "",
    "methods/family/paper.py": "from fedrec.core.method import Method\nfrom fedrec.methods.family import engine",
    "methods/family/engine.py": "def f():\n    from fedrec.core import method",
    "deploy/flower/grid.py": "import flwr.server\nfrom flwr.common import log",
    "cli/run.py": "def run():\n    from fedrec.methods.family.paper import Paper",
}

PLANTED = {
    "an import from above": ("data/a.py", "from fedrec.core.method import Method", "data/a.py:1 imports"),
    "one inside a function": ("core/a.py", "def f():\n    import fedrec.cli.run", "core/a.py:2 imports fedrec.cli.run"),
    "one of the package's name": ("core/a.py", "from fedrec import methods", None),
    "one for types alone": (
        "core/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fedrec.cli.run import run",
        "core/a.py:3 imports fedrec.cli.run from above",
    ),
    "a circle in a folder": (
        "methods/family/engine.py",
        "def f():\n    from fedrec.methods.family.paper import Paper",
        "fedrec.methods.family.engine and fedrec.methods.family.paper import one another",
    ),
    "Flower outside its room": ("deploy/node.py", "from flwr.client import App", "deploy/node.py:1 imports flwr"),
    "Flower inside a function": ("deploy/node.py", "def f():\n    import flwr as f", "deploy/node.py:2 imports flwr"),
    "a loose file": ("running.py", "", "running.py stands at the top"),
    "a room that nobody planned": ("helpers/a.py", "", "helpers/ is no room of the house"),
    "utils": ("core/utils.py", "", "core/utils.py is called utils"),
    "a module that has moved": ("core/a.py", "def f():\n    from fedrec.data.gone import x", "core/a.py:2 imports"),
    "a relative import": ("core/a.py", "from . import method", "core/a.py:1 imports ."),
    "a kernel past our cache": ("learn/k.py", "from numba import njit", "learn/k.py:1 imports numba.njit"),
    "the same in another way": ("learn/k.py", "import numba", "learn/k.py:1 imports numba"),
}


def planted(root: Path, *files: tuple[str, str]) -> Path:
    for name, content in [*KEPT.items(), *files]:
        path = root / "fedrec" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root / "fedrec"


def test_a_tree_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    assert violations(planted(tmp_path)) == []


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_violation_is_found(what: str, tmp_path: Path) -> None:
    name, content, expected = PLANTED[what]
    extra = [("methods/__init__.py", "")] if expected is None else []
    found = violations(planted(tmp_path, (name, content), *extra))
    assert len(found) == 1, found
    assert found[0].startswith(expected or f"{name}:1 imports fedrec.methods from above")


def test_a_long_circle_is_one_group() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set[str]()}
    assert circles(graph) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set[str]()}) == []


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['fedrec', '--help']\n"
        "from fedrec.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numba', 'scipy', 'pandas', 'sklearn', 'matplotlib', 'flwr', 'pydantic'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout


def test_the_torch_path_needs_no_numba() -> None:
    """A machine with torch and numpy alone can train (CUDA machines often have nothing else)."""
    code = (
        "import sys\n"
        "for name in ('numba', 'pandas', 'sklearn', 'pydantic', 'typer', 'rich', 'flwr', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "import fedrec.learn.torch.batched, fedrec.learn.train, fedrec.learn.samples, fedrec.methods.two_views.train\n"
        "import fedrec.backbones.mf, fedrec.backbones.ncf"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_only_kernels_import_numba() -> None:
    """In learn/ a folder of their own; elsewhere a file named so."""
    for path in SOURCE.rglob("*.py"):
        if path.parent != SOURCE / "learn" / "kernel" and not path.stem.endswith("_kernel") and path.stem != "compiled":
            text = path.read_text()
            assert not [how for how in ("import numba", "from numba", "llvmlite") if how in text], path


IMPORTED_AS = {"scikit-learn": "sklearn", "pyyaml": "yaml", "pycryptodome": "Crypto", "mlflow-skinny": "mlflow"}
BRINGS = {"fastapi": {"starlette"}, "scikit-learn": {"threadpoolctl"}, "typer": {"click"}, "numba": {"llvmlite"}}


def test_what_is_imported_is_declared() -> None:
    """Every foreign package comes with the base or with the extra that its missing line names."""

    def brought(requirements: list[str]) -> set[str]:
        names = {re.split(r"[\[<>=!~ ;]", one)[0] for one in requirements}
        with_them = (BRINGS[name] for name in names & BRINGS.keys())
        return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}.union(*with_them)

    project = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = brought(project["dependencies"])
    extras = {name: brought(needed) for name, needed in project["optional-dependencies"].items()}
    assert not base & EXTRAS.keys()
    assert [package for package, extra in EXTRAS.items() if package not in extras[extra]] == []
    foreign = {one.module.split(".")[0] for found in our_tree().imports.values() for one in found}
    foreign -= base | EXTRAS.keys() | sys.stdlib_module_names | {"fedrec"}
    assert foreign <= {"httpx"}  # in deploy/flower/, which begins with flwr


METHODS = SOURCE / "methods"
PAPERS = ["fedca/fedca.py", "fedcia/fedcia.py", "two_views/fed3cr.py", "two_views/fediar.py", "vae/feddae.py"]
"""Files that show a paper's objective and server step."""


def other_rooms(path: Path, home: str) -> set[str]:
    """Modules of `methods` outside a folder, and outside what all methods may share, that a file imports."""
    allowed = (f"fedrec.methods.{home}", "fedrec.methods._shared", "fedrec.methods.registry")
    named = {found.module for found in imports(path.read_text()) if found.name}
    return {name for name in named if name.startswith("fedrec.methods") and not name.startswith(allowed)}


@pytest.mark.parametrize("home", ["_shared", "fedca", "fedcia", "references", "two_views", "vae"])
def test_an_engine_lives_with_its_papers(home: str) -> None:
    """A family's folder takes nothing from another method's."""
    files = sorted((METHODS / home).glob("*.py"))
    assert len(files) > 1
    for path in files:
        assert not other_rooms(path, home), path
        assert len(path.read_text().splitlines()) <= 250, path


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_file_is_read_without_hops(paper: str) -> None:
    """No hop to another room but learn/, maths/ and backbones/, beside the contract that every method fulfils."""
    rooms = {"core", "data", "learn", "maths", "backbones", "methods", "errors", "keyed"}
    named = [found.module.split(".") for found in imports((METHODS / paper).read_text())]
    assert {parts[1] for parts in named if parts[0] == "fedrec" and len(parts) > 1} <= rooms


def test_a_hop_into_another_family_is_noticed(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from fedrec.methods.vae.feddae import FedDae\nfrom fedrec.methods.fedca.messages import Reported\n"
    )
    assert other_rooms(planted, "fedca") == {"fedrec.methods.vae.feddae"}
