"""Makes an archive for ``test_folders.py`` to open: ``python tests/golden/record_folders.py FOLDERS.tar.xz``.

One archive per released version is kept. Folders that an older version made must stay readable, so an archive is
never made again: a new version adds its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from fedrec.cli.main import main as cli
from fedrec.deploy.messages.letters import Selected
from fedrec.deploy.node.node import Node
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.methods.registry import find

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))

from direct import RUN, federation, records_of
from golden_cases import CASES, OWN, SMALL

WORLD = "scale:users=16,items=30,interactions=220"
USERS = ("1", "9")
VARIANTS = (
    "fedavg ncf",
    "fedavg organisations",
    "fedca approximate",
    "fedca ncf",
    "pfedrec ncf",
    "gpfedrec ncf",
    "feddae averaged",
    "feddae mlp",
    "fedcia mf",
    "fedcia lightgcn",
    "fedcia gfcf truncated",
    "fedcia mixed architectures",
    "fed3cr consensus matrix",
    "fed3cr with fedncf",
    "fediar mlp",
)
"""Cases whose state has other parts than that of the method's first case."""
STOPPED = ("fedavg", "fedmf", "fedca", "fed3cr", "fediar", "feddae", "fedcia mf", "fedspectral", "mf", "recvae")
NODES = ("fedavg", "fedca", "fed3cr", "feddae", "fedcia mf")
COMPARED = ("ease", "fedavg", "fedca")


def main(archive: Path) -> None:
    firsts = {case.method: name for name, case in reversed(CASES.items())}
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        known: dict[str, Any] = {"world": WORLD, "finished": {}, "stopped": {}, "nodes": {}, "compare": {}}
        for name in (*firsts.values(), *VARIANTS):
            known["finished"][folder_of(name)] = finished(name, folder_of(name))
        for name in STOPPED:
            known["stopped"][f"stopped-{folder_of(name)}"] = stopped(name, f"stopped-{folder_of(name)}")
        for name in NODES:
            known["nodes"][f"nodes-{folder_of(name)}"] = nodes(name, Path(f"nodes-{folder_of(name)}"))
        shutil.rmtree("whole")
        known["compare"]["compared"] = compared("compared")
        Path("known.json").write_text(json.dumps(known, indent=1))
        with tarfile.open(archive, "w:xz", preset=9) as file:  # like files beside each other: they share most bytes
            inside = [p for p in Path().rglob("*") if p.is_file() and p.name != ".lock"]
            for path in sorted(inside, key=lambda p: (p.suffix, p.name, p)):
                file.add(path)


def folder_of(name: str) -> str:
    return name.replace(" ", "-")


def sets_of(name: str) -> dict[str, Any]:
    case = CASES[name]
    small = {k: v for k, v in SMALL.items() if k in find(case.method).Settings.model_fields}
    return {**small, **OWN.get(case.method, {}), **case.settings}


def options_of(name: str) -> dict[str, Any]:
    one_shot = getattr(find(CASES[name].method), "one_shot", False)
    return {"data": WORLD, **({} if one_shot else {"rounds": 3}), **CASES[name].options}


def fedrec(*words: object) -> str:
    """What the command prints."""
    sys.argv = ["fedrec", *map(str, words)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            cli()
        except SystemExit as stop:
            if stop.code:
                raise
    return printed.getvalue()


def finished(name: str, out: str) -> dict[str, Any]:
    """A finished run, and what is recommended from it."""
    options = [f"--{key.replace('_', '-')}={value}" for key, value in options_of(name).items()]
    sets = [f"--set={key}={json.dumps(value).strip(chr(34))}" for key, value in sets_of(name).items()]
    words = ["run", CASES[name].method, *options, *sets, "--out", out, "--quiet"]
    fedrec(*words)
    return {
        "command": ["fedrec", *words],
        "recommend": {user: fedrec("recommend", out, "--user", user, "-k", 5) for user in USERS},
    }


def stopped(name: str, out: str) -> dict[str, Any]:
    """A run of six rounds that was stopped after the third, and the rounds of one that was not."""
    settings = resolve(
        CASES[name].method,
        {**options_of(name), "rounds": 6, "checkpoint_seconds": 0.0, "settings": sets_of(name)},
    )
    whole = execute(settings, Path("whole") / name)

    def stop(record: Any, progress: Any) -> None:
        if record.round == 3:
            raise KeyboardInterrupt

    try:
        execute(settings, Path(out), on_round=stop)
    except KeyboardInterrupt:
        lines = (Path("whole") / name / "rounds.jsonl").read_text().splitlines()
        rounds = [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]
        return {"rounds": rounds, "metrics": whole.json["metrics"], "selected_round": whole.json["selected_round"]}
    raise AssertionError("was not stopped")


def nodes(name: str, folder: Path) -> dict[str, Any]:
    """The folders of two nodes after a run that they took part in."""
    settings = resolve(CASES[name].method, {**options_of(name), "settings": sets_of(name)})
    runtime, plan, progress, exchange = federation(folder, settings, 2)
    records_of(runtime, plan, progress)
    found: dict[str, Any] = {}
    for node_name, options in exchange.options.items():
        node = Node(options, RUN)
        node.select(Selected(RUN, progress.best_round))
        user = node.names.users[0]
        found[node_name] = {
            user: fedrec("deploy", "recommend", "--folder", folder / node_name, "--user", user, "-k", 5)
        }
    return found


def compared(out: str) -> dict[str, Any]:
    """A comparison with its page."""
    sets = ["--set=dim=4", "--set=epochs=2"]
    words = ["compare", *COMPARED, f"--data={WORLD}", "--seeds=0,1", "--rounds=2", *sets, "--out", out]
    fedrec(*words, "--quiet", "--json", "compared.json")
    return {"command": ["fedrec", *words], "csv": (Path(out) / "compare.csv").read_text()}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
