"""``fedrec audit``: what a curious server, a curious participant and a few dishonest clients get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from fedrec.runs.settings import RunSettings

OPTIONS = o.takes(
    "data", "data_dir", "protocol", "settings", "robust", "robust_factor", "robust_share", "clients", "spread",
    "epsilon", "delta", "memory_mb", "device",
    before="seeds",
)  # fmt: skip


def audit(
    context: typer.Context,
    what: Annotated[
        str | None, typer.Argument(help="A method, a run's folder, or all federated methods.", metavar="METHOD|RUN|all")
    ] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            "--attack", help="Only this attack; may be repeated.", show_default="all that read messages, and boost"
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", help="Rounds to run before the effect of dishonest clients is measured.", min=1)
    ] = 15,
    share: Annotated[
        str, typer.Option("--share", help="Shares of dishonest clients, separated by commas.", metavar="X,X,...")
    ] = "0.01",
    seeds: o.Seeds = "0",
    secure: Annotated[
        bool,
        typer.Option(
            "--secure", help="Uploads are masked and summed; `all` then means every method for which a sum suffices."
        ),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the attacks' cards and stop.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the audit; an interrupted audit is continued.", callback=o.a_folder),
    ] = None,
    json_file: o.JsonFile = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="Write the figures that cards show (recipes/audit.yaml) to this file.",
            callback=o.a_file("--store"),
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Run attacks against real messages and show in one table what they get.

    Messages pass through the real encoder with the run's clip, noise and compression; dishonest clients meet the run's
    defence. Precision, recall and AUC are shown beside chance and popularity, exposure beside a run without attack.
    """
    if listed:
        _list()
        return
    from fedrec.attacks.registry import find as find_attack
    from fedrec.cli.compare import command_line, parse_seeds
    from fedrec.experiment.audit.auditing import Asked, Book, Row, as_text
    from fedrec.experiment.audit.auditing import audit as carry_out
    from fedrec.report.model.audit import summarise, summarise_sums
    from fedrec.report.page.audit import audit_page
    from fedrec.report.text import audit as words
    from fedrec.report.text.histories import HEADING, histories_sheet
    from fedrec.report.text.terminal import print_parts
    from fedrec.runs.atomic import keep_text, write_text

    if what is None:
        raise BadInput("audit what? give a method (see `fedrec methods`), a run's folder, or all")
    shares = o.numbers(share, "--share", float)
    if not shares or not all(0 < one < 1 for one in shares):
        raise BadInput(f"--share {share} is out of range; give shares between 0 and 1, e.g. 0.001,0.01,0.05")
    asked = Asked(tuple(attack or ()), rounds, shares, secure)
    asked_settings = _settings(what, o.given(context), parse_seeds(seeds), secure)
    for name in asked.names():
        find_attack(name)  # unknown ones are found before any work
    book = Book(out)

    def said(row: Row) -> None:
        if not quiet:
            typer.echo("\n".join(words.details([row])), err=True)

    for settings in asked_settings:
        carry_out(settings, asked, book, said)
    summaries, sums = summarise(book.rows), summarise_sums(book.rows)
    heading = f"Audit on {asked_settings[0].data}"
    whole = histories_sheet(book.rows)
    command = command_line(context)
    if out is not None:
        parts = [f"## {HEADING}", *whole.markdown()] if whole.rows else []
        keep_text(out / "audit.md", words.markdown_page(summaries, heading, command, sums, parts))
        keep_text(out / "audit.html", audit_page(book.rows, summaries, heading, command, sums))
    if json_file is not None:
        write_text(json_file, as_text(book.rows))
    if store is not None:
        keep_text(store, _stored(summaries, command))
    for told, name in (
        (words.sheet(summaries), heading), (words.sums_sheet(sums), f"{heading}, secure sums"),
        (whole, f"{heading}, {HEADING.lower()}"),
    ):  # fmt: skip
        if told.rows:
            print_parts(told.terminal(name))
            typer.echo("\n".join(f"- {note}" for note in told.notes))


def _settings(what: str, given: dict[str, Any], seeds: list[int], secure: bool) -> list[RunSettings]:
    """The runs that are audited, one for each method and seed."""
    from fedrec.experiment.resolve import resolve
    from fedrec.methods.registry import federated, find
    from fedrec.runs.folder import RunFolder

    if Path(what).is_dir():
        if set(given) - {"data_dir"}:
            raise BadInput(f"{what} is a run and is audited as it was; leave {', '.join(sorted(given))} out")
        return [RunFolder.open(Path(what)).settings().model_copy(update={**given, "runtime": "simulate"})]
    names = [what]
    if what == "all":
        names = [name for name in federated() if getattr(find(name), "federates", True)]
        names = [name for name in names if find(name).card.sum_suffices] if secure else names
    # a budget is kept by noise on the sums or on each upload: which, is decided with the settings
    sums = {"secure": True} if secure and given.get("epsilon") is not None else {}
    return [resolve(name, {**given, **sums, "seed": seed}) for name in names for seed in seeds]


def _list() -> None:
    from fedrec.attacks.registry import find, names

    for name in names():
        card = find(name).card
        typer.echo(f"{name}: {card.title}")
        for label in ("paper", "who", "sees"):
            typer.echo(f"  {label:<6} {getattr(card, label)}")


def _stored(summaries: Any, command: str) -> str:
    """The file that cards read."""
    import yaml

    from fedrec.report.text.audit import number

    methods: dict[str, dict[str, str]] = {}
    for one in summaries:
        said: dict[str, str] = {}
        if one.items_attack:
            found = f"{number(one.items['precision'])} / {number(one.items['recall'])}"
            said["items"] = f"{found} of a client's items (precision / recall, attack {one.items_attack})"
        figures = {
            "membership": one.membership, "exposure": one.exposure, "defended": one.exposure_defended,
            "adaptive": one.exposure_adaptive,
        }  # fmt: skip
        said |= {name: number(figure, 3) for name, figure in figures.items() if figure is not None}
        methods[one.method] = {**said, "defence": one.defence}
    head = "# What was measured of each method, as text; `fedrec audit ... --store FILE` writes it.\n"
    return head + str(yaml.safe_dump({"command": command, "methods": methods}, sort_keys=False, width=110))
