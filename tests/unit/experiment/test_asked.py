"""What Python takes: numbers of numpy, None and mappings where they are sensible; one line for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedrec
from fedrec.errors import BadInput
from fedrec.experiment import asked

FRAME = pd.DataFrame([(u, (u * 7 + k * 3) % 40) for u in range(30) for k in range(8)], columns=["K", "item"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda out: fedrec.run(None), "which method? None is not a name; give one of fedrec.methods()"),  # type: ignore[arg-type]
        (lambda out: fedrec.run("popularity", data=None), "which data? give a name or a file"),
        (lambda out: fedrec.run("popularity", settings=[1]), "settings=[1] is not a mapping"),  # type: ignore[arg-type]
        (lambda out: fedrec.run("popularity", roundz=1), "did you mean 'rounds'"),  # type: ignore[call-arg]
        (lambda out: fedrec.compare(["popularity"], seed=7, out=out), "compare takes seeds=[7]"),  # type: ignore[call-arg]
        (lambda out: fedrec.compare(["ease"], method="fcf", out=out), "compare takes methods=['fcf']"),  # type: ignore[call-arg]
        (lambda out: fedrec.compare(["popularity"], jobs=0, out=out), "jobs=0 is out of range; give 1 or more"),
        (lambda out: fedrec.compare(None, out=out), "which methods? None is not a list"),  # type: ignore[arg-type]
        (lambda out: fedrec.compare(["popularity"], seeds=["a"], out=out), "seeds=['a'] is not a list of seeds"),  # type: ignore[list-item]
        (lambda out: fedrec.compare(["popularity"], seeds=1.5, out=out), "seeds=1.5 is not a list of seeds"),  # type: ignore[arg-type]
        (lambda out: fedrec.compare(["popularity"], settings=3, out=out), "settings=3 is not a mapping"),  # type: ignore[arg-type]
        (lambda out: fedrec.tune(["ease"], method="fcf", out=out), "tune takes methods=['fcf']"),
        (lambda out: fedrec.tune(["ease"], test=True, out=out), "test=True: tune decides it itself"),
        (lambda out: fedrec.tune(["ease"], seeds=[1], out=out), "tune has no setting 'seeds'; did you mean 'seed'"),
        (lambda out: fedrec.tune(["ease"], jobs=0, out=out), "jobs=0 is out of range"),
        (lambda out: fedrec.tune(["ease"], settings=[1], out=out), "settings=[1] is not a mapping"),  # type: ignore[arg-type]
        (lambda out: fedrec.run("popularity", FRAME, columns={"user": 'K "or so"'}), "read the data with fedrec.load"),
    ],
)  # fmt: skip
def test_what_is_not_sensible_is_one_line(call: Any, said: str, tmp_path: Path) -> None:
    """The seed and the method were ignored; the others were errors from deep within."""
    with pytest.raises(BadInput) as found:
        call(tmp_path / "out")
    assert said in str(found.value)
    assert not (tmp_path / "out").exists()


def test_seeds_may_be_numbers_of_numpy() -> None:
    for given in (np.arange(2), range(2), [np.int64(0), 1], (0, 1)):
        assert asked.seeds(given) == [0, 1]
    assert (asked.seeds(np.int32(3)), asked.seeds(None)) == ([3], None)


def test_none_is_what_was_not_given() -> None:
    assert asked.options({"rounds": None, "epsilon": None, "copies": np.int64(2)}, "run") == {
        "epsilon": None,
        "copies": 2,
    }
    assert fedrec.run("popularity", rounds=None).json["rounds"] == 1  # type: ignore[arg-type]


def test_a_mapping_says_which_column_is_what(tmp_path: Path) -> None:
    """`fedrec.load` took it, and a run did not."""
    result = fedrec.run("popularity", FRAME, columns={"user": "K"}, out=tmp_path / "run")
    assert result.metrics == fedrec.run("popularity", fedrec.load(FRAME, columns={"user": "K"})).metrics
    assert result.json["settings"]["columns"] == "user=K"


def test_ids_may_be_numbers_of_numpy() -> None:
    result = fedrec.run("popularity", FRAME, columns="user=K")
    plain = result.recommend("1", k=3)
    assert result.recommend(np.int64(1), 3) == result.recommend(1, 3, exclude=None) == plain
    left = result.recommend(1, 3, exclude=np.int64(plain[0].item))  # type: ignore[call-overload]
    assert plain[0].item not in [one.item for one in left]
    assert len(result.recommend(np.array([1, 2]), 3)) == 6  # type: ignore[call-overload]
    assert result.recommend_history(np.int64(3), 2, exclude=None) == result.recommend_history([3], 2)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"1\.5 is not a user's id"):
        result.recommend(1.5)  # type: ignore[call-overload]
    with pytest.raises(BadInput, match=r"1\.5 is not an item's id"):
        result.recommend(1, exclude=1.5)  # type: ignore[call-overload]
    with pytest.raises(BadInput, match="b'1' is not a user's id"):  # bytes are whole numbers, one after another
        result.recommend(b"1")
    with pytest.raises(BadInput, match="b'30' is not an item's id"):
        result.recommend(1, exclude=b"30")
