"""The files of a node and of a server: whole, their own, and nobody else's."""

from __future__ import annotations

import json
import random
import shutil
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, federation, records_of

from crafted_state import HOSTILE_NAMES, craft, craft_old, parts
from fedrec.core.old_names import OLD_NAMES
from fedrec.deploy import steps
from fedrec.deploy.flower.commands import connection
from fedrec.deploy.flower.tasks import Link
from fedrec.deploy.messages.letters import Selected
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.recommending import recommend
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.processes import Crew, write_toml
from fedrec.deploy.server.job import Job, read_served, write_served
from fedrec.deploy.server.rules import Rules
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.runs.atomic import private_folder
from fedrec.runs.folder import RunFolder
from killed import killed_before

FLIPS = 100


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's folder after a run of two rounds."""
    home = tmp_path_factory.mktemp("federation")
    settings = resolve("fedavg", {"rounds": 2, "settings": {"dim": 2, "epochs": 1}})
    runtime, plan, progress, _ = federation(home, settings, 2)
    records_of(runtime, plan, progress)
    Node(NodeOptions("node0", home / "node0"), RUN).select(Selected(RUN, progress.best_round))
    return home / "node0"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "node0"))


def node(folder: Path) -> Node:
    return Node(NodeOptions("node0", folder), RUN)


def readers(folder: Path) -> dict[str, Callable[[], Any]]:
    """Every stored file of a node, and what reads it."""
    found: dict[str, Callable[[], Any]] = {}
    for path in sorted((folder / RUN).iterdir()):
        name = path.name
        if name == "share.safetensors":
            found[name] = lambda: node(folder).share
        elif name == "answer.safetensors":
            found[name] = lambda: node(folder).store.answer("")
        elif name.endswith(".json"):
            found[name] = partial(lambda name: node(folder).store.read_json(name), name)
        elif ".download" in name:
            found[name] = partial(lambda name: node(folder).store.read_bytes(name.removesuffix(".safetensors")), name)
        elif name.endswith(".users"):
            found[name] = partial(lambda name: node(folder).store.read(name, dict[str, np.ndarray]), name)
        elif name.endswith(".safetensors"):
            found[name] = partial(lambda name: node(folder).private(name), name)
    return found


def refused(path: Path, read: Callable[[], Any]) -> str:
    with pytest.raises(BadInput) as caught:
        read()
    said = str(caught.value)
    assert str(path) in said
    assert "\n" not in said
    return said


def test_flipped_bits_in_a_nodes_files_are_found(folder: Path) -> None:
    read = readers(folder)
    assert {"share.safetensors", "answer.safetensors", "job.json", "names.json", "selected.json"} < read.keys()
    assert any(name.startswith("state-") for name in read)
    assert any(name.endswith(".download.safetensors") for name in read)
    draw = random.Random(5)
    for name, work in read.items():
        path = folder / RUN / name
        work()
        whole = path.read_bytes()
        for _ in range(-(-FLIPS // len(read))):
            data = bytearray(whole)
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            path.write_bytes(data)
            refused(path, work)
        path.write_bytes(whole)
        work()


@pytest.mark.parametrize("attempt", HOSTILE_NAMES)
def test_a_name_in_a_nodes_state_leads_nowhere(folder: Path, attempt: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    call = {"class": HOSTILE_NAMES[attempt], "fields": {"command": {"plain": f"touch {trace}"}}}
    for name, read in readers(folder).items():
        if name.endswith((".safetensors", ".users")):
            path = folder / RUN / name
            _, arrays, about = parts(path)
            craft(path, json.dumps(call), arrays, about)
            refused(path, read)
    assert not trace.exists()


def test_private_state_of_another_method_is_refused(folder: Path) -> None:
    path = next((folder / RUN).glob("state-*.safetensors"))
    good, arrays, about = parts(path)
    good["class"] = "FedCaPrivate"
    craft(path, json.dumps(good), arrays, about)
    assert "not among UserVectors" in refused(path, lambda: node(folder).private(path.name))


def test_a_nodes_files_of_0_1_0_are_read(folder: Path) -> None:
    user = node(folder).names.users[0]
    before = [r.item for r in recommend(folder, user, 5, RUN)]
    old_name = {new: old for old, new in OLD_NAMES.items()}

    def renamed(spec: Any) -> Any:
        if isinstance(spec, dict):
            return {k: old_name[v] if k == "class" else renamed(v) for k, v in spec.items()}
        return [renamed(v) for v in spec] if isinstance(spec, list) else spec

    for path in sorted((folder / RUN).iterdir()):
        if path.suffix == ".json":
            plain = json.loads(path.read_text())
            assert plain.pop("blake2b")
            path.write_text(json.dumps(plain))
        elif path.name.endswith(".download.safetensors"):
            path.with_name(path.name.removesuffix(".safetensors")).write_bytes(parts(path)[1]["/bytes"].tobytes())
            path.unlink()
        elif path.suffix in (".safetensors", ".users"):
            structure, arrays, about = parts(path)
            path.unlink()
            craft_old(path, json.dumps(renamed(structure)), arrays, about)
    assert [r.item for r in recommend(folder, user, 5, RUN)] == before
    node(folder).store.answer("")


def modes(folder: Path) -> dict[str, int]:
    """Permissions of a folder and of all in it."""
    return {str(path): stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")]}


def all_private(folder: Path) -> None:
    for name, mode in modes(folder).items():
        assert not mode & 0o077, f"{name} is {mode:o}"


def test_a_nodes_files_are_its_own(made: Path) -> None:
    assert len(modes(made)) > 8
    all_private(made)


def test_a_servers_files_are_its_own(tmp_path: Path) -> None:
    """Whatever the umask of who starts it; what Flower writes, state.db above all, and what is left of 0.1.0."""
    home = tmp_path / "server"
    home.mkdir(mode=0o755)
    connection(home, Link("127.0.0.1:1"))
    (home / "state.db").write_text("")
    (home / "state.db").chmod(0o644)
    home.chmod(0o755)
    crew = Crew(home)
    crew.start("writer", ["sh", "-c", f"echo hello; echo x > {home}/new.db; mkdir {home}/apps"]).wait()
    write_toml(home / "node.toml", {"name": "a"})
    assert crew.tail("writer") == "hello"
    assert {Path(name).name for name in modes(home)} >= {"new.db", "apps", "state.db", "writer.log", "config.toml"}
    all_private(home)


def test_the_folder_of_a_deployed_run_is_its_own(tmp_path: Path) -> None:
    settings = resolve("fedavg", {"rounds": 2})
    RunFolder.create(tmp_path / "run", settings, private=True)
    Job(Rules(), 3, "mine", own_data=True, catalogue=("a", "b", "c")).write(tmp_path / "run")
    write_served(tmp_path / "run", done=False, state="waiting for nodes")
    all_private(tmp_path / "run")


@pytest.mark.parametrize("name", ["federation.json", "catalogue.txt", "settings.yaml"])
def test_a_deployed_run_that_was_killed_while_it_was_made_counts_as_new(tmp_path: Path, name: str) -> None:
    """`--out` said that its folder was used, and `--resume` that it was no federated run."""
    items, out = tmp_path / "items.txt", tmp_path / "run"
    items.write_text("a\nb\nc\n")
    settings = resolve("fedavg", {"rounds": 2, "runtime": "flower", "nodes": 2})
    with killed_before(name):
        steps.create_run(settings, items, Rules(), out)
    with pytest.raises(BadInput, match=r"holds no run yet.*--out"):
        RunFolder.open(out)
    steps.create_run(settings, items, Rules(), out)
    assert Job.read(out).catalogue == ("a", "b", "c")
    all_private(out)


def test_settings_of_a_deployed_run_that_were_cut_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("a\nb\nc\n")
    settings = resolve("fedavg", {"rounds": 2, "runtime": "flower", "nodes": 2})
    folder = steps.create_run(settings, tmp_path / "items.txt", Rules(), tmp_path / "run")
    path = folder.path / "settings.yaml"
    path.write_text(path.read_text().partition("# blake2b")[0])
    refused(path, folder.settings)


def test_a_folder_of_somebodys_own_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o755)
    (tmp_path / "own" / "data.csv").write_text("")
    private_folder(tmp_path / "own", mark="config.toml")
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["federation.json", "catalogue.txt", "served.json"])
def test_flipped_bits_in_a_servers_job_are_found(tmp_path: Path, name: str) -> None:
    Job(Rules(), 3, "mine", own_data=True, catalogue=("a", "b", "c")).write(tmp_path)
    write_served(tmp_path, done=True, state="done", prepare=1.5, exposure=[3, ["sizes"]])
    path = tmp_path / name

    def read() -> None:
        Job.read(tmp_path)
        read_served(tmp_path)

    read()
    whole = path.read_bytes()
    bits = range(8 * len(whole))
    for bit in bits if len(bits) < 200 else random.Random(name).sample(bits, 200):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        refused(path, read)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "",
        '{"run": 1}',
        '{"rules": {"nodes": "x"}, "n_items": 1, "data_name": "a", "own_data": 1}',
        "{" * 99,
    ],
)
def test_a_job_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "federation.json").write_text(text)
    refused(tmp_path / "federation.json", lambda: Job.read(tmp_path))
