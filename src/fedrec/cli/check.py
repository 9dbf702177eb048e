"""``fedrec check``: the laws, tried on the methods of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from fedrec.laws.checking import Law, Outcome


def check(
    file: Annotated[Path, typer.Argument(help="Python file that defines and registers methods.")],
    laws: Annotated[
        str | None, typer.Option("--laws", help="Only these laws.", metavar="N,N,...", show_default="all")
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Try every law on the methods of a file: blocks, nodes, threads, order, absence, messages, resuming, learning.

    The file is imported, so its code is run. The exit status is 1 if a law is broken.
    """
    from fedrec.laws.checking import check as outcomes_of
    from fedrec.laws.checking import methods_in

    chosen = chosen_laws(laws)
    broken = False
    for method in methods_in(file):
        found = []
        for outcome in outcomes_of(method, chosen):
            found.append(outcome)
            if not quiet:
                word = "held" if outcome.held else "BROKEN"
                typer.echo(f"{method}: law {outcome.law.number} {word} ({outcome.seconds:.1f} s)", err=True)
        print_outcomes(method, found)
        broken |= not all(outcome.held for outcome in found)
    if broken:
        raise typer.Exit(1)


def chosen_laws(text: str | None) -> tuple[Law, ...]:
    """``"1,7"`` as laws; all of them where nothing is said."""
    from fedrec.laws.checking import LAWS

    if text is None:
        return LAWS
    known = {str(law.number): law for law in LAWS}
    words = o.words(text)
    wrong = [word for word in words if word not in known]
    if wrong or not words:
        raise BadInput(f"--laws {text!r}: a method has the laws {', '.join(known)}; give some of them, e.g. 1,7")
    return tuple(law for number, law in known.items() if number in words)


def print_outcomes(method: str, found: list[Outcome]) -> None:
    """A table: law, held or broken, what failed."""
    from rich.text import Text

    from fedrec.report.text.terminal import print_rows

    rows: list[list[str | Text]] = []
    for one in found:
        held = Text("yes") if one.held else Text("no", style="bold red")
        rows.append([str(one.law.number), one.law.title, held, "\n".join(one.problems)])
    print_rows(("law", "", "held", "what failed"), rows, title=f"{method} under the laws", title_justify="left")
