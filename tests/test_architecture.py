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
    {"maths", "learn", "backbones", "privacy"},
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
    """In learn/ a folder of their own; elsewhere a file named so, and the counting of ranks."""
    kernels = {SOURCE / "evaluation" / "counting.py", *(SOURCE / "learn" / "kernel").iterdir()}
    for path in SOURCE.rglob("*.py"):
        if path not in kernels and not path.stem.endswith("_kernel"):
            text = path.read_text()
            assert not [how for how in ("import numba", "from numba", "llvmlite") if how in text], path
