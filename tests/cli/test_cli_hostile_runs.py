"""Opening somebody's run folder runs nothing, and nothing is computed from what does not belong there."""

from __future__ import annotations

import json
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from command_line import Cli
from crafted_state import HOSTILE_NAMES, craft, craft_old, hostile_structures, parts
from fedrec.core.loop import Progress, Record
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.runs import sealed
from fedrec.runs.manifest import write_manifest
from killed import Killed

STRUCTURES = list(hostile_structures({"dict": {"server": {"class": "", "fields": {"items": {}}}, "private": {}}}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is finished and one that was stopped after its second round."""
    home = tmp_path_factory.mktemp("runs")
    given = {"data": "demo", "rounds": 3, "settings": {"dim": 2, "epochs": 1}, "checkpoint_seconds": 0}

    def stop(record: Record, progress: Progress) -> None:
        if record.round == 2:
            raise Killed

    execute(resolve("fedavg", dict(given)), home / "finished")
    with pytest.raises(Killed):
        execute(resolve("fedavg", dict(given)), home / "stopped", stop)
    return home


@pytest.fixture
def finished(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs / "finished", tmp_path / "finished"))


@pytest.fixture
def stopped(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs / "stopped", tmp_path / "stopped"))


def relist(folder: Path) -> None:
    """A manifest that vouches for whatever is there."""
    names = [file.name for file in folder.iterdir() if file.name != "manifest.json"]
    write_manifest(folder, names, {})


def refused(fedrec: Cli, file: Path) -> str:
    """The one line with which a folder is refused; it names the file."""
    folder = file.parent
    word = ("recommend", folder, "--user", "u001") if folder.name == "finished" else ("run", "--resume", folder)
    done = fedrec(*word)
    assert (done.status, done.out) == (2, ""), done
    lines = done.err.splitlines()
    lines = [line for line in lines if "made before checksums" not in line]
    assert len(lines) == 1, done.err[:2000]
    assert str(file) in lines[0]
    assert len(lines[0]) < 600
    return str(lines[0])


def test_as_they_are_they_are_read(fedrec: Cli, finished: Path, stopped: Path) -> None:
    assert fedrec("recommend", finished, "--user", "u001").status == 0
    assert fedrec("run", "--resume", stopped, "--quiet").status == 0
    ours, theirs = (json.loads((run / "result.json").read_text())["metrics"] for run in (finished, stopped))
    assert ours == theirs


@pytest.mark.parametrize("old", [False, True], ids=["sealed", "as of 0.1.0"])
@pytest.mark.parametrize("attempt", HOSTILE_NAMES)
def test_a_name_leads_nowhere(
    fedrec: Cli, finished: Path, stopped: Path, attempt: str, old: bool, tmp_path: Path
) -> None:
    make, trace = craft_old if old else craft, tmp_path / "trace"
    call = {"class": HOSTILE_NAMES[attempt], "fields": {"command": {"plain": f"touch {trace}"}}}
    for file in (finished / "model.safetensors", stopped / "checkpoint.safetensors"):
        good, arrays, about = parts(file)
        state = good if file.parent == finished else good["dict"]["state"]
        state["dict"]["server"] = call
        make(file, json.dumps(good), arrays, about)
    relist(finished)
    for file in (finished / "model.safetensors", stopped / "checkpoint.safetensors"):
        assert "not among ItemServer, UserVectors" in refused(fedrec, file)
    assert not trace.exists()


@pytest.mark.parametrize("case", STRUCTURES)
def test_a_structure_that_is_not_the_methods_is_refused(fedrec: Cli, finished: Path, case: str) -> None:
    file = finished / "model.safetensors"
    good, arrays, about = parts(file)
    craft(file, hostile_structures(good)[case], arrays, about)
    relist(finished)
    refused(fedrec, file)


@pytest.mark.parametrize(
    "about",
    [
        "[]", "{}", "3", "nonsense", '{"round": 1}',
        '{"round": 1e3, "best_round": 1, "best_value": 0, "judged_since_best": 0, "records": []}',
        '{"round": 1, "best_round": 2, "best_value": 0, "judged_since_best": 0, "records": []}',
        '{"round": %s, "best_round": 0, "best_value": 0, "judged_since_best": 0, "records": []}' % ("9" * 4000),
        '{"round": 1, "best_round": 1, "best_value": 0, "judged_since_best": 0, "records": [{"round": 1}]}',
        '{"round": 1, "best_round": 1, "best_value": 0, "judged_since_best": 0, "records": [3]}',
        '{"round": 1, "best_round": 1, "best_value": "x", "judged_since_best": 0, "records": []}',
    ],
)  # fmt: skip
def test_a_checkpoint_says_where_the_run_stood(fedrec: Cli, stopped: Path, about: str) -> None:
    file = stopped / "checkpoint.safetensors"
    good, arrays, _ = parts(file)
    craft(file, json.dumps(good), arrays, about)
    refused(fedrec, file)


def _with_header(data: bytes, change: Callable[[bytes], bytes], length: int | None = None) -> bytes:
    size = int.from_bytes(data[:8], "little")
    header = change(data[8 : 8 + size])
    return struct.pack("<Q", len(header) if length is None else length) + header + data[8 + size :]


def _in_header(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: _with_header(data, lambda header: header.replace(old, new))


LIES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "seven bytes": lambda data: data[:7],
    "cut short": lambda data: data[:-1],
    "one byte more": lambda data: data + b"\0",
    "header longer than the file": lambda data: _with_header(data, bytes, len(data)),
    "header of 2^63 bytes": lambda data: _with_header(data, bytes, 1 << 63),
    "header of no bytes": lambda data: _with_header(data, bytes, 0),
    "header one byte short": lambda data: _with_header(data, bytes, int.from_bytes(data[:8], "little") - 1),
    "header that is no text": lambda data: _with_header(data, lambda h: b"\xff" * len(h)),
    "header that is no object": lambda data: _with_header(data, lambda h: b"[]".ljust(len(h))),
    "header nested without end": lambda data: _with_header(data, lambda h: b'{"a":' * 100_000),
    "an entry twice": lambda data: _with_header(data, lambda h: h.rstrip()[:-1] + b',"__metadata__":{}}'),
    "metadata gone": _in_header(b"__metadata__", b"__metaduta__"),
    "a shape of 2^60": _in_header(b'"shape":[', b'"shape":[1152921504606846976,'),
    "a format that numpy has not": _in_header(b'"F32"', b'"BF16"'),
    "offsets that lie": _in_header(b'"data_offsets":[0', b'"data_offsets":[9'),
}


@pytest.mark.parametrize("old", [False, True], ids=["sealed", "as of 0.1.0"])
@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_about_itself(fedrec: Cli, stopped: Path, lie: str, old: bool) -> None:
    file = stopped / "checkpoint.safetensors"
    if old:
        good, arrays, about = parts(file)
        craft_old(file, json.dumps(good), arrays, about)
    before = file.read_bytes()
    file.write_bytes(LIES[lie](before))
    assert file.read_bytes() != before
    refused(fedrec, file)


SETTINGS = {
    "a tag that calls": "!!python/object/apply:os.system ['touch trace']",
    "a tag on a value": "method: !!python/name:os.system\n",
    "a tag on a word": "method: !!bool fedavg\n",
    "a tag on nothing": "method: !!int ''\n",
    "a tag on a date": "method: !!timestamp fedavg\n",
    "a tag on a list": "method: fedavg\nsettings: !!map [1]\n",
    "anchors": "method: fedavg\nsettings: {a: &a [1], b: [*a, *a]}\n",
    "a key twice": "method: fedavg\nmethod: fcf\n",
    "a key that is a list": "? [a, b]\n: 1\n",
    "a list": "- method\n",
    "a word": "fedavg\n",
    "empty": "",
    "nested without end": "[" * 5000,
    "a number of 5,000 digits": "method: fedavg\nseed: " + "9" * 5000 + "\n",
    "a number of 4,000 digits": "method: fedavg\nseed: " + "9" * 4000 + "\n",
    "a hexadecimal number of 20,000 digits": "method: fedavg\nseed: 0x" + "f" * 20_000 + "\n",
    "a binary number of 400,000 digits": "method: fedavg\nseed: 0b" + "1" * 400_000 + "\n",
    "a hexadecimal number that is short, but not in decimals": "method: fedavg\nseed: 0x" + "f" * 4_000 + "\n",
    "a number to base 60": "method: fedavg\nseed: 1" + ":1" * 200_000 + "\n",
    "a fraction to base 60": "method: fedavg\nseed: 1" + ":1" * 150_000 + ".5\n",
    "many values": "method: fedavg\nsettings: {dim: [" + "1," * 200_000 + "]}\n",
    "not YAML": "method: [fedavg\n",
    "foreign setting": "method: fedavg\ncommand: rm\n",
    "wrong kind": "method: fedavg\nrounds: many\n",
    "too long": "method: fedavg\n#" + "x" * (2 << 20),
}


@pytest.mark.parametrize("sealing", [True, False], ids=["sealed", "as of 0.1.0"])
@pytest.mark.parametrize("case", SETTINGS)
def test_settings_are_plain_values(fedrec: Cli, stopped: Path, case: str, sealing: bool, tmp_path: Path) -> None:
    file, text = stopped / "settings.yaml", SETTINGS[case]
    text = text if text.endswith("\n") or not sealing else text + "\n"
    file.write_text(sealed.sealed_yaml(text) if sealing else text)
    began = time.process_time()
    refused(fedrec, file)
    assert time.process_time() - began < 10  # numbers to base 60 took half a minute
    assert not (tmp_path / "trace").exists()


RESULTS = {
    "a list": "[1, 2]",
    "a word": '"done"',
    "nothing": "",
    "an empty object": "{}",
    "not JSON": "{'method': 1}",
    "nested without end": "[" * 100_000,
    "a key twice": '{"method": "fedavg", "method": "fcf"}',
    "bytes": "\udcff\udcfe",
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_is_an_object_with_what_a_result_says(fedrec: Cli, finished: Path, case: str) -> None:
    file = finished / "result.json"
    file.write_bytes(RESULTS[case].encode(errors="surrogateescape"))
    assert "manifest.json" in refused(fedrec, file)  # it is not the file that was written
    relist(finished)
    refused(fedrec, file)


@pytest.mark.parametrize(("name", "value"), [("rounds", "9" * 4000), ("metrics", "[]"), ("data", "3"), ("seed", '"0"')])
def test_a_result_has_the_right_kinds(fedrec: Cli, finished: Path, name: str, value: str) -> None:
    file = finished / "result.json"
    plain = {**json.loads(file.read_text()), name: "HERE"}
    file.write_text(json.dumps(plain).replace('"HERE"', value))
    relist(finished)
    assert repr(name) in refused(fedrec, file)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("data.users", None), ("data.name", ["x"]), ("seconds.total", None), ("seconds.total", float("inf")),
        ("bytes", None), ("bytes.upload", "x"), ("bytes.download", float("nan")), ("settings.rounds", "many"),
        ("settings.settings", [1]), ("privacy", 3), ("privacy_card", {"epsilon": 1}), ("privacy_card", 3),
        ("versions", {"python": 3}), ("versions", "x"), ("secure", {"cohorts": "x"}), ("secure", 3),
    ],
)  # fmt: skip
def test_a_result_says_what_reports_are_made_of(fedrec: Cli, finished: Path, place: str, value: object) -> None:
    """Reports and the page that is exported took it as it was, and failed somewhere within."""
    file = finished / "result.json"
    plain = json.loads(file.read_text())
    part, _, name = place.rpartition(".")
    where = plain[part] if part else plain
    where[name] = value
    if value is None:
        del where[name]
    file.write_text(json.dumps(plain))
    relist(finished)
    assert f"it does not say '{place.partition('.')[0]}" in refused(fedrec, file)


def _half(array: Any) -> Any:
    changed = array.copy()
    changed[len(array) // 2] = -1
    return changed


def _holed(array: Any) -> Any:
    changed = array.astype(np.float64)
    changed[len(array) // 2] = np.nan
    return changed


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "no length": lambda array: np.array(3, array.dtype),
    "nothing": lambda array: array[:0],
    "a column": lambda array: array.reshape(-1, 1),
    "fractions": lambda array: array.astype(np.float64),
    "a hole": _holed,
    "complex": lambda array: array.astype(np.complex64),
    "truths": lambda array: array.astype(bool),
    "a step back": _half,
    "beyond 63 bits": lambda array: np.where(np.arange(len(array)) == 1, 2**63 + 5, array.astype(np.uint64)),
}


@pytest.mark.parametrize(
    "name", ["user_start", "users/start", "users/bytes", "train/start", "train/values", "beside/start"]
)
@pytest.mark.parametrize("case", ARRAYS)
def test_what_a_model_knows_of_its_data_fits_together(fedrec: Cli, finished: Path, name: str, case: str) -> None:
    if name == "users/bytes" and case in ("a step back", "beyond 63 bits"):
        pytest.skip("a byte has no sign")
    file = finished / "data.safetensors"
    good, arrays, about = parts(file)
    craft(file, json.dumps(good), {**arrays, f"/{name}": ARRAYS[case](arrays[f"/{name}"])}, about)
    relist(finished)
    refused(fedrec, file)


@pytest.mark.parametrize("who", ["users", "items"])
def test_a_model_of_nobody_or_of_nothing_is_refused(fedrec: Cli, finished: Path, who: str) -> None:
    file = finished / "data.safetensors"
    good, arrays, about = parts(file)
    none = {f"/{who}/start": np.zeros(1, np.int64), f"/{who}/bytes": np.zeros(0, np.uint8)}
    lists = {f"/{part}/values": np.zeros(0, np.int32) for part in ("train", "beside")}
    length = 1 if who == "users" else len(arrays["/train/start"])
    starts = {f"/{part}/start": np.zeros(length, np.int64) for part in ("train", "beside")}
    if who == "users":
        none["/user_start"] = np.zeros(1, np.int64)
    if who == "items":
        good["dict"]["titles"] = {"plain": None}
        arrays = {key: array for key, array in arrays.items() if not key.startswith("/titles")}
    craft(file, json.dumps(good), {**arrays, **none, **lists, **starts}, about)
    relist(finished)
    assert "no users or no items" in refused(fedrec, file)


FORMS: dict[str, Callable[[Any], Any]] = {
    "half of it": lambda array: array[: len(array) // 2],
    "one row": lambda array: array[:1],
    "twice": lambda array: np.concatenate([array, array]),
    "flat": lambda array: array.reshape(-1),
    "narrow": lambda array: np.ascontiguousarray(array[..., :1]),
    "one axis more": lambda array: array[None],
    "no length": lambda array: np.array(3, array.dtype),
    "other numbers": lambda array: array.astype(np.float64),
    "complex": lambda array: array.astype(np.complex64),
}


@pytest.mark.parametrize("name", ["server/items", "private/users"])
@pytest.mark.parametrize("case", FORMS)
def test_an_array_has_the_form_of_the_methods_own(
    fedrec: Cli, finished: Path, stopped: Path, name: str, case: str
) -> None:
    for file, at in (
        (finished / "model.safetensors", f"/{name}"),
        (stopped / "checkpoint.safetensors", f"/state/{name}"),
    ):
        good, arrays, about = parts(file)
        craft(file, json.dumps(good), {**arrays, at: FORMS[case](arrays[at])}, about)
        if file.parent == finished:
            relist(finished)
        assert "belongs" in refused(fedrec, file)


def killed(method: str, settings: dict[str, Any], folder: Path) -> Path:
    """The checkpoint of a small run that was killed after its first round."""
    given = {"data": "demo", "rounds": 3, "settings": {"dim": 2, "epochs": 1, **settings}, "checkpoint_seconds": 0}

    def stop(record: Record, progress: Progress) -> None:
        raise Killed

    with pytest.raises(Killed):
        execute(resolve(method, given), folder, stop)
    return folder / "checkpoint.safetensors"


def test_compiled_code_gets_no_shorter_array(fedrec: Cli, runs: Path, tmp_path: Path) -> None:
    """A stream of random numbers a client: the kernel read beyond the end of an array that had one."""
    file = killed("pfedrec", {}, tmp_path / "stopped")
    good, arrays, about = parts(file)
    craft(file, json.dumps(good), {**arrays, "/state/private/streams": arrays["/state/private/streams"][:1]}, about)
    assert "streams' is uint64 (1,) where uint64 (120,) belongs" in refused(fedrec, file)


@pytest.mark.parametrize(
    ("method", "settings", "name"),
    [
        ("perfedrec", {}, "labels"),
        ("cofedrec", {}, "category"),
        ("cofedrec", {}, "group"),
        ("fedca-approx", {}, "ids"),
        ("fedca", {"alpha": "auto", "beta": "auto", "train_from": "average"}, "points"),
    ],
)
@pytest.mark.parametrize("number", [10**6, -5])
def test_a_place_that_is_none_is_no_index_error(
    fedrec: Cli, tmp_path: Path, method: str, settings: dict[str, Any], name: str, number: int
) -> None:
    file = killed(method, settings, tmp_path / "stopped")
    good, arrays, about = parts(file)
    at = next(at for at in arrays if at.startswith("/state/server") and at.endswith(f"/{name}"))
    arrays[at].reshape(-1)[0] = number
    craft(file, json.dumps(good), arrays, about)
    assert f"the field '{name}' of" in (line := refused(fedrec, file))
    assert f"has {number} where" in line


@pytest.mark.parametrize("number", [10**6, -5])
def test_a_row_that_is_none_in_a_clients_own_table(fedrec: Cli, tmp_path: Path, number: int) -> None:
    file = killed("fedca-approx", {"rho": 0.5}, tmp_path / "stopped")
    good, arrays, about = parts(file)
    arrays["/state/private/ids"].reshape(-1)[0] = number
    craft(file, json.dumps(good), arrays, about)
    assert f"the field 'ids' of FewPrivate has {number} where" in refused(fedrec, file)


def test_a_file_edited_on_purpose_is_refused(fedrec: Cli, finished: Path, stopped: Path) -> None:
    for folder in (finished, stopped):
        file = folder / "settings.yaml"
        file.write_text(file.read_text().replace("seed: 0", "seed: 1"))
        assert "start a new run" in refused(fedrec, file)


def test_a_manifest_that_is_gone_is_missed(fedrec: Cli, finished: Path) -> None:
    (finished / "manifest.json").unlink()
    assert "is missing" in refused(fedrec, finished / "manifest.json")


def test_a_users_table_that_was_exchanged_is_refused(finished: Path) -> None:
    from fedrec.errors import BadInput
    from fedrec.report.model.runs import load_run

    load_run(finished)
    file = finished / "users.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(BadInput, match=r"users\.parquet"):
        load_run(finished)
    relist(finished)
    with pytest.raises(BadInput, match=r"users\.parquet .* not a table"):
        load_run(finished)


LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * 1_000_000]))
TABLES = {
    "no users": {"HR@10": [1.0]},
    "words for numbers": {"user": ["a"], "HR@10": ["high"]},
    "numbers for users": {"user": [1], "HR@10": [1.0]},
    "lists": {"user": ["a"], "HR@10": [[1.0]]},
    "a gigabyte of one id": {"user": LONG, "HR@10": [1.0] * 1_000},
    "very many rows": {"user": ["a"] * 9_000_000, "HR@10": np.zeros(9_000_000)},
}


@pytest.mark.parametrize("case", TABLES)
def test_a_users_table_is_small_and_plain(finished: Path, case: str) -> None:
    from fedrec.errors import BadInput
    from fedrec.report.model.runs import load_run

    file = finished / "users.parquet"
    before = load_run(finished)
    assert before.per_user is not None
    assert before.users[:2] == ("u001", "u002")
    parquet.write_table(pa.table(TABLES[case]), file)
    relist(finished)
    assert file.stat().st_size < 1 << 20
    pool = pa.default_memory_pool()
    highest = pool.max_memory()
    with pytest.raises(BadInput, match=r"users\.parquet is damaged or was changed: (it|a user's id)"):
        load_run(finished)
    assert pool.max_memory() - highest < 100 << 20


def test_settings_are_readable_yaml(finished: Path) -> None:
    """Whoever reads the file with another tool finds the settings alone."""
    assert yaml.safe_load((finished / "settings.yaml").read_text())["method"] == "fedavg"


def test_links_in_a_mailed_run_lead_nowhere(fedrec: Cli, stopped: Path, tmp_path: Path) -> None:
    """Resuming it overwrote the file that its model was a link to, and made the one of a link that led to none."""
    mine, new = tmp_path / "thesis.txt", tmp_path / "new"
    mine.write_text("mine")
    (stopped / "rounds.jsonl").unlink()
    for name in ("rounds.jsonl", "model.safetensors", "data.safetensors", "users.parquet"):
        (stopped / name).symlink_to(mine)
    for name in ("manifest.json", "result.json"):
        (stopped / name).symlink_to(new)
    reached = tmp_path / "link to the run"
    reached.symlink_to(stopped, target_is_directory=True)  # that the folder itself is one is its owner's business
    assert fedrec("run", "--resume", reached, "--quiet").status == 0
    assert mine.read_text() == "mine"
    assert not new.exists()
    assert not any(file.is_symlink() for file in stopped.iterdir())
    assert fedrec("recommend", stopped, "--user", "u001").status == 0
