"""The method in CONTRIBUTING.md is real: it is taken from the page, registered, run, and obeys the laws."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec
from fedrec.core import wire
from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.core.participation import Participation
from fedrec.core.population import population
from fedrec.core.state import flatten
from fedrec.data.load import load
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods import registry
from fedrec.simulate.runtime import Simulator
from house import LAYERS

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"


def page_code() -> str:
    """The method on the page."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found.group(1)


@pytest.fixture
def biased(tmp_path: Path) -> Iterator[Any]:
    """The page's code as a module outside the package."""
    (tmp_path / "biased_example.py").write_text(page_code())
    spec = importlib.util.spec_from_file_location("biased_example", tmp_path / "biased_example.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["biased_example"] = module
    spec.loader.exec_module(module)
    yield module
    registry._registered.pop("biased")
    del sys.modules["biased_example"]


def test_it_needs_three_imports() -> None:
    found = [node for node in ast.walk(ast.parse(page_code())) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(found) <= 3, [ast.unparse(node) for node in found]


def test_the_pages_map_is_the_tree() -> None:
    """Every room and file at the top, in the one-way order that ``tests/house.py`` states."""
    page, source = PAGE.read_text(encoding="utf-8"), PAGE.parent / "src" / "fedrec"
    named = set(re.findall(r"^  (\w+(?:/|\.py)) ", page.partition("src/fedrec/")[2].partition("```")[0], re.M))
    there = {f"{path.name}/" if path.is_dir() else path.name for path in source.iterdir() if path.suffix in ("", ".py")}
    assert named == there - {"__pycache__/", "py.typed"}
    order = page.partition("Imports go one way, downwards in\n\n```\n")[2].partition("```")[0].split("->")
    assert [frozenset(re.findall(r"\w+", rooms)) for rooms in reversed(order)] == list(LAYERS)


def test_all_that_fedrec_offers_is_there_and_importing_it_is_light() -> None:
    code = (
        "import sys, fedrec\n"
        "assert not {'torch', 'numba', 'numpy', 'pydantic'} & set(sys.modules), 'heavy'\n"
        "sys.modules['numba'] = None\n"
        "assert 'fedavg' in fedrec.methods()\n"
        "missing = [name for name in fedrec.__all__ if not hasattr(fedrec, name)]\n"
        "assert not missing, missing\n"
        "assert fedrec.methods() == fedrec.methods.registry.names()\n"  # the package of that name answers the same
        "assert set(fedrec.__all__) <= set(dir(fedrec))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'Methud'"):
        fedrec.Methud  # noqa: B018


def test_it_runs_is_kept_and_recommends(biased: Any, tmp_path: Path) -> None:
    result = fedrec.run(
        "biased", data="demo", rounds=3, out=tmp_path / "run", settings={"dim": 4, "epochs": 2, "bias_rate": 0.2}
    )
    assert 0 <= result.metrics["HR@10"] <= 1
    again = fedrec.open_run(tmp_path / "run")
    user = again.prepared.task.data.user_ids[0]
    assert [r.item for r in again.recommend(user, 5)] == [r.item for r in result.recommend(user, 5)]


def test_it_obeys_the_laws(biased: Any) -> None:
    task = find_protocol("strict").prepare(load("demo"), 0)
    settings = biased.BiasedSettings(dim=4, epochs=2)

    def run(block_clients: int) -> tuple[Simulator, Progress]:
        sim = Simulator(biased.Biased(settings), population(task), task, 0, block_clients=block_clients)
        plan = Plan(2, 0, Participation(0.5), "download", "valid", "NDCG@10")
        return sim, run_rounds(sim, plan, Progress(), lambda *_: None)

    (one, first), (other, second) = run(block_clients=1000), run(block_clients=11)
    assert first.records[-1].test == pytest.approx(second.records[-1].test, abs=1e-9)
    left, right = flatten(one.snapshot())[0], flatten(other.snapshot())[0]
    for name in left:
        np.testing.assert_allclose(left[name], right[name], atol=1e-4)
    with pytest.raises(wire.WireError):
        wire.encode(one.private)


def test_its_settings_are_checked(biased: Any) -> None:
    with pytest.raises(BadInput, match="bias_rate"):
        fedrec.run("biased", data="demo", settings={"bias_rat": 0.1})
    with pytest.raises(BadInput, match="bias_rate"):
        fedrec.run("biased", data="demo", settings={"bias_rate": 7})


@pytest.mark.parametrize("items", [slice(None, -1), slice(3, None), 0])
def test_scores_of_too_few_items_are_refused(biased: Any, monkeypatch: pytest.MonkeyPatch, items: Any) -> None:
    """Figures came out of memory beside the scores, and nothing was said."""
    whole = biased.Biased.score
    monkeypatch.setattr(biased.Biased, "score", lambda *given: whole(*given)[:, items])
    with pytest.raises(BadInput, match=r"scores have the shape \[.*\]; they must be one row a user with \d+ items"):
        fedrec.run("biased", data="demo", rounds=1, settings={"dim": 4, "epochs": 1})


def test_the_name_of_another_method_is_refused(biased: Any) -> None:
    """It was taken: its runs said `fedavg`, and with several jobs the built-in one was run in its place."""
    with pytest.raises(BadInput, match="'fedavg' is the name of a method that is built in; give Mine another"):
        registry.register(type("Mine", (biased.Biased,), {"name": "fedavg"}))
    assert registry.find("fedavg").__module__ == "fedrec.methods.fedavg"


def test_processes_of_their_own_are_refused_a_method_that_only_this_program_knows(
    biased: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others were trained first, and its runs failed with "unknown method 'biased'"."""
    monkeypatch.setenv(registry.FILES, "")
    file = str(tmp_path / "biased_example.py")
    for call in (fedrec.compare, fedrec.tune):
        with pytest.raises(BadInput, match="biased is known to this program alone"):
            call(["biased", "fcf"], data="demo", rounds=1, jobs=2, out=tmp_path / call.__name__)
        assert not list(tmp_path.glob(f"{call.__name__}/**/settings.yaml"))
    with pytest.raises(BadInput, match=re.escape(f"name it '{file}:Biased', or take one job")):
        registry.refuse_unknown_elsewhere(["biased"])
    monkeypatch.setenv(registry.FILES, f"{file}:Biased")
    registry.refuse_unknown_elsewhere(["biased", "fcf"])


def test_a_method_of_a_notebook_has_no_file_to_name(biased: Any) -> None:
    registry.register(type("Mine", (biased.Biased,), {"name": "mine", "__module__": "__nowhere__"}))
    try:
        with pytest.raises(BadInput, match=r"write it to a file, name it 'FILE\.py:Mine', or take one job"):
            registry.refuse_unknown_elsewhere(["mine"])
    finally:
        registry.forget("mine")
