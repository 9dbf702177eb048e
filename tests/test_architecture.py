"""Imports go one way: a layer may use those below it, never those above."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "fedrec"

LAYERS = [
    {"errors", "keyed", "threads"},
    {"data"},
    {"evaluation"},
    {"core"},
    {"maths", "learn", "backbones", "privacy", "secure"},
    {"methods"},
    {"recipes", "runs", "simulate", "deploy", "report"},
    {"running", "recommending", "jobs"},
    {"cells", "laws"},
    {"comparing", "reproducing", "analysing", "analysing_filters", "analysing_leak", "analysing_models"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imported(path: Path) -> set[str]:
    """Parts of the package that a file imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fedrec":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("fedrec.")}
    return {part for part in found if part in LEVEL}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if home not in LEVEL:
        return
    upward = {part for part in imported(path) if LEVEL[part] > LEVEL[home]}
    # the loader of a class from a file, and the doctor, are the only ones to reach for the package itself
    assert not upward, f"{path.name} ({home}) imports {sorted(upward)} from above"


def test_only_deploy_imports_flower():
    for path in SOURCE.rglob("*.py"):
        if "deploy" not in path.parts:
            text = path.read_text()
            assert "import flwr" not in text, path
            assert "from flwr" not in text, path


def test_there_is_no_utils():
    assert not [p for p in SOURCE.rglob("*") if "util" in p.name]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['fedrec', '--help']\n"
        "from fedrec.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numba', 'scipy', 'pandas', 'sklearn', 'matplotlib', 'flwr', 'pydantic'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout


def test_the_torch_path_needs_no_numba():
    """A machine with torch and numpy alone can train (CUDA machines often have nothing else)."""
    code = (
        "import sys\n"
        "for name in ('numba', 'pandas', 'sklearn', 'pydantic', 'typer', 'rich', 'flwr', 'matplotlib'):\n"
        "    sys.modules[name] = None\n"
        "import fedrec.learn.torch.batched, fedrec.learn.train, fedrec.learn.samples, fedrec.methods.two_views.train\n"
        "import fedrec.backbones.mf, fedrec.backbones.ncf"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_only_kernels_import_numba():
    """In learn/ a folder of their own; elsewhere a file named so."""
    for path in SOURCE.rglob("*.py"):
        if path.parent != SOURCE / "learn" / "kernel" and not path.stem.endswith("_kernel"):
            text = path.read_text()
            assert not [how for how in ("import numba", "from numba", "llvmlite") if how in text], path


METHODS = SOURCE / "methods"
PAPERS = ["fedca/fedca.py", "fedcia/fedcia.py", "two_views/fed3cr.py", "two_views/fediar.py", "vae/feddae.py"]
"""Files that show a paper's objective and server step."""


def other_rooms(path: Path, home: str) -> set[str]:
    """Modules of `methods` outside a folder, and outside what all methods may share, that a file imports."""
    allowed = (f"fedrec.methods.{home}", "fedrec.methods._shared", "fedrec.methods.registry")
    named = {n.module or "" for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)}
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
    assert imported(METHODS / paper) <= rooms


def test_a_hop_into_another_family_is_noticed(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from fedrec.methods.vae.feddae import FedDae\nfrom fedrec.methods.fedca.messages import Reported\n"
    )
    assert other_rooms(planted, "fedca") == {"fedrec.methods.vae.feddae"}
