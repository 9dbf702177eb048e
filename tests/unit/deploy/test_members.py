"""Who takes part in secure sums: keys, the list that operators make, and letters of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedrec.cli.main import app
from fedrec.deploy import steps
from fedrec.deploy.members import FILE, collect_members, hosts_of, make_sums_key, read_members, read_sums_key
from fedrec.deploy.messages.envelope import pack_step, pack_stepped, unpack_step, unpack_stepped
from fedrec.deploy.messages.letters import Step, Stepped
from fedrec.deploy.messages.plain_values import BadLetter
from fedrec.deploy.node.consent import accepted
from fedrec.deploy.node.share import NodeOptions
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder
from fedrec.secure.failures import Refusal

NAMES = ("a", "b", "c")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    public = [make_sums_key(tmp_path, name, clients)[1] for name, clients in zip(NAMES, (1, 3, 1), strict=True)]
    collect_members(public, tmp_path / FILE)
    return tmp_path / FILE


def test_operators_make_the_list_from_what_the_nodes_give(tmp_path: Path) -> None:
    run = CliRunner()
    for name in NAMES:
        done = run.invoke(app, ["deploy", "keys", str(tmp_path), "--node", name, "--clients", "2"])
        assert [Path(line).name for line in done.output.split()] == [
            name,
            f"{name}.pub",
            f"{name}.sums",
            f"{name}.sums.pub",
        ]
    files = [str(tmp_path / f"{name}.sums.pub") for name in NAMES]
    done = run.invoke(app, ["deploy", "members", *files, "--out", str(tmp_path / FILE)])
    assert done.output == f"{tmp_path / FILE}: a, b, c\n"
    assert {name: entry["clients"] for name, entry in read_members(tmp_path / FILE).items()} == dict.fromkeys(NAMES, 2)
    assert (tmp_path / "a.sums").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../x", "a b", "", ".."])
def test_what_is_no_name_makes_no_key_anywhere(tmp_path: Path, name: str) -> None:
    """The refusal came after the first pair was written, and ``../x`` lay outside the folder."""
    done = CliRunner().invoke(app, ["deploy", "keys", str(tmp_path / "keys"), "--node", name])
    assert isinstance(done.exception, BadInput)
    assert "is not a node's name" in str(done.exception)
    assert list(tmp_path.rglob("*")) == []


def test_both_key_pairs_are_made_or_neither(tmp_path: Path) -> None:
    run = CliRunner()
    done = run.invoke(app, ["deploy", "keys", str(tmp_path), "--node", "a", "--clients", "0"])
    assert isinstance(done.exception, BadInput)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.sums").write_text("kept")
    done = run.invoke(app, ["deploy", "keys", str(tmp_path), "--node", "a"])
    assert isinstance(done.exception, BadInput)
    assert [path.name for path in tmp_path.iterdir()] == ["a.sums"]


@pytest.mark.parametrize("host", ["", "a b", "s\u00e9rver", "a:8000", "x" * 300])
def test_a_certificate_is_for_names_of_machines(tmp_path: Path, host: str) -> None:
    done = CliRunner().invoke(app, ["deploy", "keys", str(tmp_path / "keys"), "--host", host])
    assert isinstance(done.exception, BadInput)
    assert "is not a name or an address" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_of_a_machine_has_its_certificate(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["deploy", "keys", str(tmp_path), "--host", f"{'x' * 50}.{'y' * 50}.example.org"])
    assert done.exit_code == 0, done.exception


@pytest.mark.parametrize("which", ["--node", "--host"])
def test_keys_where_a_file_is_are_bad_input(tmp_path: Path, which: str) -> None:
    (tmp_path / "file").write_text("x")
    done = CliRunner().invoke(app, ["deploy", "keys", str(tmp_path / "file"), which, "a"])
    assert isinstance(done.exception, BadInput)
    assert "choose another folder" in str(done.exception)


def test_a_node_signs_for_itself_and_for_as_many_clients_as_it_said(listed: Path) -> None:
    hosts, key = hosts_of(read_members(listed)), read_sums_key(listed.with_name("b.sums"))
    signature = key.sign(b"text")
    for name in ("b", "b/0", "b/2"):
        assert name in hosts
        hosts.verify(name, signature, b"text")
    for name in ("b/3", "b/-1", "b/01", "b/", "b/x", "b/\u0662", "d", "a/0/0"):
        assert name not in hosts
        with pytest.raises(Refusal):
            hosts.verify(name, signature, b"text")
    with pytest.raises(Refusal, match="not that of 'a'"):
        hosts.verify("a", signature, b"text")


def test_files_that_are_something_else_are_bad_input(listed: Path, tmp_path: Path) -> None:
    public = [tmp_path / f"{name}.sums.pub" for name in NAMES]
    with pytest.raises(BadInput, match="a name has one key"):
        collect_members([*public, public[0]], tmp_path / "other.json")
    with pytest.raises(BadInput, match="needs at least 3"):
        collect_members([public[0], public[2]], tmp_path / "other.json")
    with pytest.raises(BadInput, match=r"is called NAME\.sums\.pub"):
        collect_members([tmp_path / "a.sums"], tmp_path / "other.json")
    with pytest.raises(BadInput, match=r"already has a\.sums"):
        make_sums_key(tmp_path, "a")
    public[1].write_text(public[0].read_text().replace(" a ", " b "))
    with pytest.raises(BadInput, match="same key"):
        collect_members(public, tmp_path / "other.json")
    listed.write_text(listed.read_text().replace('"clients": 3', '"clients": 9'))
    with pytest.raises(BadInput, match="checksum"):
        read_members(listed)


def test_a_node_is_started_with_its_own_key(listed: Path) -> None:
    found = steps.secure_options(listed, listed.with_name("a.sums"), "a", 3, 0.05)
    assert found is not None
    assert found["secure-least"] == 3
    with pytest.raises(BadInput, match="has another key for 'a'"):
        steps.secure_options(listed, listed.with_name("b.sums"), "a", 3, 0.05)
    with pytest.raises(BadInput, match="at least 3"):
        steps.secure_options(listed, listed.with_name("a.sums"), "a", 2, 0.05)


@pytest.mark.parametrize(("secure", "why"), [(True, "without --members"), (False, "in secure sums only")])
def test_a_node_takes_part_in_secure_sums_or_in_others_not_in_both(secure: bool, why: str, listed: Path) -> None:
    options = NodeOptions("a", listed.parent, members=None if secure else listed, sums_key=listed.with_name("a.sums"))
    with pytest.raises(BadInput, match=why):
        accepted(options, {"method": "fcf", "secure": secure})


def test_letters_of_a_step_say_what_was_said() -> None:
    step = Step("run-1", 3, {"a": b"", "b/0": b"12"})
    assert unpack_step(pack_step(step)) == step
    assert unpack_stepped(pack_stepped(Stepped({"a": b"x"}))) == Stepped({"a": b"x"})


@pytest.mark.parametrize(
    "change",
    [{"step": 5}, {"step": True}, {"members": ["a"]}, {"members": ["a", "a"]}, {"members": "ab"}, {"run": "../x"}],
)
def test_letters_that_are_none_are_refused(change: dict[str, Any]) -> None:
    head, blocks = pack_step(Step("run-1", 3, {"a": b"", "b/0": b"12"}))
    with pytest.raises(BadLetter):
        unpack_step(({**head, **change}, blocks))


def test_a_federation_on_this_machine_reads_its_nodes_files_as_they_were_written(tmp_path: Path) -> None:
    """Nodes that take part in secure sums refuse to be read without the list of members."""
    given = {"data": "demo", "runtime": "flower", "nodes": 3, "secure": True, "secure_by": "nodes"}
    settings = resolve("fcf", given)
    runtime, folder = prepare(settings).runtime, RunFolder.create(tmp_path / "run", settings)
    assert set(runtime._make_members(folder)) == {"node0", "node1", "node2"}
    for options in runtime.node_options(folder):
        assert accepted(options, settings.model_dump(mode="json")).secure
        assert options.folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(BadInput, match="give --nodes 3 or more"):
        prepare(resolve("fcf", {**given, "nodes": 2}))
