"""``fedrec deploy``: the steps of a federation on separate machines."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli import serve as service
from fedrec.cli.result import print_items, write_json
from fedrec.errors import BadInput
from fedrec.evaluation.headline import headline
from fedrec.report.text.shown import shown

if TYPE_CHECKING:  # imports that cost a second
    from fedrec.core.loop import Record

app = typer.Typer(help="Run a federation on separate machines, over TLS.", no_args_is_help=True)

State = Annotated[Path, typer.Option("--state", help="The server's folder: its database and log.")]
Folder = Annotated[Path, typer.Option("--folder", help="The node's own folder: private state never leaves it.")]


@app.command("keys")
def keys(
    folder: Annotated[Path, typer.Argument(help="Folder to write them to.")],
    host: Annotated[
        list[str] | None, typer.Option("--host", help="A name or address under which nodes reach the server.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Make this node's key pairs instead.")] = None,
    clients: Annotated[
        int, typer.Option("--clients", help="How many clients the node hosts, for secure sums of single clients.")
    ] = 1,
) -> None:
    """Make a certificate authority and the server's certificate; or, with --node, a node's key pairs.

    A node has two: NAME for its connection, and NAME.sums for secure sums, whose public half goes to all other nodes.
    """
    from fedrec.deploy.credentials import make_node_keys, make_server

    if node is not None and host:
        raise BadInput("--host is for the server's certificate, --node for a node's key; give one of them")
    if node is None:
        made = make_server(folder, host or [])
    else:
        made = make_node_keys(folder, node, clients)
    for path in made:
        typer.echo(str(path))


@app.command("members")
def members(
    files: Annotated[list[Path], typer.Argument(help="The NAME.sums.pub files of all nodes, from their operators.")],
    out: Annotated[Path, typer.Option("--out", help="The list, for --members.", callback=o.a_file("--out"))] = Path(
        "members.json"
    ),
) -> None:
    """Make the list of who takes part in secure sums. Every operator makes their own; the server hands out none."""
    from fedrec.deploy.members import collect_members

    typer.echo(f"{out}: {', '.join(collect_members(files, out))}")


@app.command("server")
def server(
    key_folder: Annotated[Path, typer.Option("--keys", help="Folder with ca.crt, server.crt and server.key.")],
    state: State = Path("server"),
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "0.0.0.0",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8000,
) -> None:
    """Start the server; it runs until it is interrupted.

    The port answers only admitted nodes, over TLS. Runs can be started, listed and stopped only from this machine.
    """
    from fedrec.deploy import steps

    steps.server(state, key_folder, host, port, typer.echo)


@app.command("register")
def register(
    public_key: Annotated[Path, typer.Argument(help="The node's .pub file.")],
    state: State = Path("server"),
    name: Annotated[
        str | None, typer.Option("--name", help="The node's name.", show_default="the one in the .pub file")
    ] = None,
) -> None:
    """Admit a node: its name belongs to this key from now on. Use it on the server's machine while the server runs."""
    from fedrec.deploy import steps

    typer.echo(f"admitted {steps.admit(state, public_key, name)}")


@app.command("revoke")
def revoke(name: Annotated[str, typer.Argument(help="The node's name.")], state: State = Path("server")) -> None:
    """Take a node's key off the list: it is turned away at once and out of every run from the next round on."""
    from fedrec.deploy import steps

    steps.revoke(state, name)
    typer.echo(f"revoked {name}")


@app.command("node")
def node(
    name: Annotated[str, typer.Option("--name", help="The node's name; no other node of the federation may have it.")],
    data: Annotated[Path, typer.Option("--data", help="The node's own data: file, or folder with a ready split.")],
    server: Annotated[str, typer.Option("--server", help="The server, as HOST:PORT.")],
    ca: Annotated[Path, typer.Option("--ca", help="The server's ca.crt.")],
    key: Annotated[Path, typer.Option("--key", help="The node's private key.")],
    folder: Folder,
    port: Annotated[
        int | None,
        typer.Option("--port", help="A local port for the node's helper processes.", show_default="any free one"),
    ] = None,
    members: Annotated[
        Path | None, typer.Option("--members", help="Take part only in secure sums, with the nodes on this list.")
    ] = None,
    sums_key: Annotated[
        Path | None, typer.Option("--sums-key", help="The node's key for secure sums.", show_default="KEY.sums")
    ] = None,
    least: Annotated[int, typer.Option("--secure-least", help="Smallest cohort that it takes part in.")] = 3,
    colluding: Annotated[
        float, typer.Option("--secure-colluding", help="Share of a cohort that it assumes to help the server.")
    ] = 0.05,
    min_noise: Annotated[
        float, typer.Option("--min-noise", min=0, help="Refuse runs with less noise than this.")
    ] = 0.0,
    max_clip: Annotated[
        float | None,
        typer.Option(
            "--max-clip", min=0, help="Refuse runs in which one user counts more than this.", show_default="any"
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", min=0, help="The most epsilon that all runs of the node may spend together.", show_default="any"
        ),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", min=0, max=1, help="The delta of the budget.")] = 1e-6,
    metrics: Annotated[
        bool,
        typer.Option("--share-metrics", help="Send sums of metrics in spite of these limits; no noise protects them."),
    ] = False,
) -> None:
    """Start a node with its own data; it runs until it is interrupted, and reconnects by itself.

    The node enforces the limits its owner sets, whatever a server asks; its privacy ledger is in its folder.
    """
    from math import inf

    from fedrec.deploy import steps
    from fedrec.privacy.ledger import OwnerPolicy

    if not 0 < delta < 1:
        raise BadInput(f"--delta {delta:g} is not a probability; give a number above 0 and below 1, such as 1e-6")
    most, largest = inf if budget is None else budget, inf if max_clip is None else max_clip
    policy = OwnerPolicy(min_noise, largest, most, delta, metrics)
    own = steps.secure_options(members, sums_key or key.with_name(f"{key.name}.sums"), name, least, colluding)
    steps.node(name, data, folder, server, ca, key, port, typer.echo, secure=own, policy=policy)


@app.command(
    "run",
    cls=o.takes(
        "protocol", "rounds", "seed", "participation", "rest", "robust", "robust_factor", "robust_share", "settings",
        "epsilon", "delta", "min_interactions", "evaluate_every", "node_sums", "secure", "secure_by", "secure_least",
        "secure_dropout", "secure_colluding", "secure_cohort",
        before="deadline", seed={"help": "Seed of what the server draws; nodes have a secret of their own."},
    ),
)  # fmt: skip
def run(
    context: typer.Context,
    method: o.Method = None,
    items: Annotated[
        Path | None, typer.Option("--items", help="The public catalogue: a text file, one item id per line.")
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes to wait for before the first round.")] = 2,
    state: State = Path("server"),
    deadline: Annotated[float, typer.Option("--deadline", help="Seconds that a node has for a round.")] = 300.0,
    least: Annotated[float, typer.Option("--least", help="Share of nodes that a round needs in order to count.")] = 0.5,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for nodes to come.")] = 120.0,
    members: Annotated[
        Path | None, typer.Option("--members", help="With --secure: the list of nodes and their keys.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What the data is called in the result.")] = "federation",
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run, on the server.")] = None,
    json_file: o.JsonFile = None,
    resume: o.Resume = None,
) -> None:
    """Run a method over the connected nodes. Use it on the server's machine; the run's folder is written there."""
    from fedrec.core.settings import build
    from fedrec.deploy import steps
    from fedrec.deploy.server.rules import Rules
    from fedrec.experiment.resolve import resolve
    from fedrec.runs.claim import claimed
    from fedrec.runs.folder import RunFolder

    if resume is not None:
        own = ("method", "items", "nodes", "deadline", "least", "wait", "members", "name", "out")
        o.refuse_beside_resume(context, *own)
        o.of_this_machine(context)
        folder = RunFolder.open(resume)
    else:
        if method is None or items is None:
            raise BadInput("give a method and --items FILE (the public catalogue), or --resume FOLDER")
        given = {**o.given(context), "data": name, "runtime": "flower", "nodes": nodes}
        rules = build(Rules, {"nodes": nodes, "deadline": deadline, "least": least, "wait": wait}, "deploy run")
        chosen = resolve(method, given)
        with claimed(Path("runs"), f"{method}-{name}") if out is None else nullcontext(out) as place:
            folder = steps.create_run(chosen, items, rules, place, members)
    typer.echo(f"run folder: {folder.path}")

    result = steps.run(state, folder, show_round, typer.echo)
    typer.echo(f"round {result['selected_round']} selected: test {headline(result['metrics']['test'])}")
    if json_file is not None:
        write_json(json_file, result)


def show_round(record: Record, _: object) -> None:
    """A round of a federated run, and who was missing."""
    typer.echo(f"  round {record.round}  loss {record.loss:.4f}  valid {headline(record.valid, most=1)}")
    for who in record.missing:
        typer.echo(f"    missing: {shown(who)}")


@app.command("try")
def try_it(
    method: Annotated[str, typer.Argument(help="The method (see `fedrec methods`).")] = "fedavg",
    data: Annotated[str, typer.Option("--data", help="Data to cut into the nodes' files.")] = "demo",
    nodes: Annotated[int, typer.Option("--nodes", help="How many nodes.", min=1, max=100)] = 2,
    rounds: Annotated[int, typer.Option("--rounds", help="How many rounds.", min=1)] = 3,
    out: Annotated[Path, typer.Option("--out", help="A new folder for all its files.", callback=o.a_folder)] = Path(
        "federation"
    ),
) -> None:
    """A whole federation on this machine: keys, TLS, server, nodes with their own files, a run, a recommendation."""
    from fedrec.core.reference import Reference
    from fedrec.deploy.trying import try_out
    from fedrec.experiment.resolve import resolve
    from fedrec.methods.registry import find

    if issubclass(find(method), Reference):
        raise BadInput(f"{method} is centralised: there is nothing to federate; take a federated method")
    chosen = resolve(method, {"data": "federation", "runtime": "flower", "nodes": nodes, "rounds": rounds})
    whose, found = try_out(out, chosen, data, show_round, typer.echo)
    typer.echo(f"recommended on {whose}:")
    print_items(found)
    typer.echo(f"everything is below {out}; `fedrec deploy status {quote(str(out / 'run'))}` shows the run")


@app.command("status")
def status(folder: Annotated[Path, typer.Argument(help="The run's folder, on the server.")]) -> None:
    """Where a run stands: rounds, metrics, who is missing and why."""
    from fedrec.deploy import steps
    from fedrec.runs.folder import RunFolder

    for line in steps.status(RunFolder.open(folder)):
        typer.echo(shown(line))


@app.command("list")
def list_all(state: State = Path("server")) -> None:
    """The runs that this server was given, and where each stands."""
    from fedrec.deploy.operating import list_runs

    for line in list_runs(state):
        typer.echo(shown(line))


@app.command("stop")
def stop(
    folder: Annotated[
        Path | None, typer.Argument(help="The run's folder.", show_default="the run that goes on")
    ] = None,
    state: State = Path("server"),
) -> None:
    """End a run; what it has learnt stays, and `deploy run --resume` goes on from there."""
    from fedrec.deploy.operating import stop_run

    typer.echo(f"stopped {stop_run(state, folder)}")


@app.command("nodes")
def nodes(state: State = Path("server")) -> None:
    """The admitted nodes, and when each was last heard of."""
    from fedrec.deploy.operating import list_nodes

    for line in list_nodes(state):
        typer.echo(shown(line))


@app.command("log")
def log(
    state: State = Path("server"),
    last: Annotated[int, typer.Option("--last", help="How many past lines to show first.", min=0)] = 20,
    follow: Annotated[bool, typer.Option("--follow", help="Keep showing new lines until Ctrl-C.")] = False,
) -> None:
    """The end of the server's log."""
    from fedrec.deploy.operating import log_lines

    for line in log_lines(state, last, follow):
        typer.echo(shown(line))


@app.command("recommend")
def recommend(
    folder: Folder,
    user: Annotated[str, typer.Option("--user", help="One of the node's users, as in its data.")],
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
    run: Annotated[str | None, typer.Option("--run", help="A run's id.", show_default="the last finished one")] = None,
) -> None:
    """Items for one of the node's users, on the node itself; nothing is sent."""
    from fedrec.deploy.node.recommending import recommend as best

    print_items(best(folder, user, k, run))


@app.command("serve")
def serve(
    folder: Folder,
    host: service.Host = "127.0.0.1",
    port: service.Port = 8080,
    token_file: service.TokenFile = None,
    quiet: service.Silent = False,
) -> None:
    """Answer over HTTP for the node's own users, on the node itself; the last finished run serves while one trains."""
    from fedrec.serve.sources import NodeSource
    from fedrec.serve.start import Place
    from fedrec.serve.start import serve as start

    start(NodeSource(folder), Place(host, port, token_file, quiet), typer.echo)
