"""Which defaults apply to which run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedrec.core.settings import TrainingSettings, build, plain_value
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.report.text.commands import run_command
from fedrec.runs.recipes import read_recipes, recipe


def test_an_entry_with_a_setting_applies_where_it_is_asked_for() -> None:
    data = "fedcia/ml100k_943"
    assert recipe("fedcia", data, "paper-fedcia").settings["epochs"] == 1
    assert recipe("fedcia", data, "paper-fedcia", {"backbone": "mf"}).settings["epochs"] == 1
    found = recipe("fedcia", data, "paper-fedcia", {"backbone": "mlp"})
    assert (found.settings["epochs"], found.settings["lr"], found.settings["noise"]) == (10, 0.01, 0.001)


def test_what_is_given_wins_and_the_command_says_only_that() -> None:
    asked = {"data": "fedcia/ml100k_943", "protocol": "paper-fedcia", "settings": {"backbone": "mlp", "lr": 0.05}}
    settings = resolve("fedcia", asked)
    assert (settings.settings["lr"], settings.settings["epochs"], settings.rounds) == (0.05, 10, 60)
    words = (
        "fedrec run fedcia --data fedcia/ml100k_943 --protocol paper-fedcia --seed 0 --set backbone=mlp --set lr=0.05"
    )
    assert run_command(settings.model_dump(mode="json")) == words


def test_the_compared_methods_of_fedca_have_sixty_percent_of_the_clients() -> None:
    compared = ("fcf", "fedavg", "perfedrec", "fedatt", "pfedgraph", "pfedrec", "fedca")
    assert {resolve(name, {"protocol": "paper-fedca"}).participation for name in compared} == {0.6}
    assert {resolve(name, {}).participation for name in compared} == {1.0}
    assert resolve("fedca", {"protocol": "paper-fedca"}).settings.get("r", 1.0) == 1.0


def test_mixtures_at_inference_come_with_what_validation_chose() -> None:
    chosen = resolve("fedca", {"data": "filmtrust", "settings": {"train_from": "average"}}).settings
    assert (chosen["variant_similarity"], chosen["alpha"], chosen["rho"]) == ("changes", 30.0, 0.0)
    assert resolve("fedca", {"data": "filmtrust"}).settings["alpha"] == 0.3


@pytest.mark.parametrize("text", ["2024-02-31", "!!bool foo", "!!int ''", "!!timestamp foo", "!!map [1]", "[" * 5000])
def test_what_is_no_yaml_value_is_no_failure(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(f"defaults: {text}\n")
    with pytest.raises(BadInput, match="it is not YAML"):
        read_recipes(path)
    assert plain_value(text) == text


def laughs(depth: int) -> str:
    """Lists of ten references to the list before: 10 to the power of ``depth`` words in a few hundred bytes."""
    lines = ["x0: &x0 [" + ", ".join(["lol"] * 10) + "]"]
    lines += [f"x{n}: &x{n} [" + ", ".join([f"*x{n - 1}"] * 10) + "]" for n in range(1, depth)]
    return "\n".join([*lines, f"defaults: [{{settings: {{dim: *x{depth - 1}}}}}]", ""])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (laughs(10), "it refers to a part of itself"),
        ("defaults: [{settings: {dim: 1" + ":1" * 10_000 + "}}]\n", "a number to base 60"),
        ("defaults: [{settings: {dim: 0x" + "f" * 4_200 + "}}]\n", "more than 4300 digits"),
        ("defaults: [" + "[]," * 100_000 + "]\n", "more than 30000 values"),
        ("#" * (1 << 20), "longer than"),
        ("defaults: []\ndefaults: []\n", "a key appears twice"),
        ("\x00", "it is not YAML"),
    ],
)
def test_a_hostile_recipe_is_refused_before_it_is_unfolded(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=said) as caught:
        read_recipes(path)
    assert len(str(caught.value)) < 500 + len(str(path))


def test_a_long_value_is_quoted_by_its_beginning() -> None:
    folded: Any = ["lol"] * 10
    for _ in range(8):
        folded = [folded] * 10
    for value in (folded, "x" * 100_000, -(1 << 100_000), {"a" * 1_000: folded}, list(range(100_000))):
        with pytest.raises(BadInput, match="dim=") as caught:
            build(TrainingSettings, {"dim": value}, "fedavg")
        assert len(str(caught.value)) < 500
    with pytest.raises(BadInput, match="no setting 'xxx") as caught:
        build(TrainingSettings, {"x" * 100_000: 1}, "fedavg")
    assert len(str(caught.value)) < 1_000
