"""A node's configuration says its options, and is read back as them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.worker import config_of, options_of


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    plain = NodeOptions("a", tmp_path, hosted="demo", part=1, parts=3, memory_mb=7, repeatable=True)
    sums = NodeOptions("b", tmp_path, data="x.csv", members=tmp_path / "m", sums_key=tmp_path / "k", secure_least=4)
    for options in (plain, sums):
        assert options_of(config_of(options)) == options
    assert "data" not in config_of(plain), "what is not there is not written"


def test_an_empty_name_is_none_and_an_empty_number_is_refused() -> None:
    least = {"name": "a", "folder": "f"}
    assert options_of({**least, "data": "", "members": ""}) == NodeOptions("a", Path("f"))
    assert options_of({**least, "part": 0, "secure-colluding": 0}) == NodeOptions("a", Path("f"), secure_colluding=0.0)
    for key in ("secure-least", "min_noise"):
        with pytest.raises(ValueError, match=r"''|convert"):
            options_of({**least, key: ""})
