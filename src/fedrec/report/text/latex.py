"""Tables for a paper: LaTeX with booktabs, the best in bold, nothing that LaTeX would read as a command."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from fedrec.report.model.comparison import Cell, Comparison
from fedrec.report.model.leaderboard import Leaderboard
from fedrec.report.model.reproduction import Reproduction, heading
from fedrec.report.text import leaderboard
from fedrec.report.text.reproduction import heads_of, line_texts
from fedrec.report.text.wording import HEADINGS, table_groups, title

_SIGNS = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "°": r"$^\circ$", "–": "--", "…": r"\dots{}", "\n": " ", "\r": " ",
})  # fmt: skip
_MARKS = str.maketrans({"*": r"\ast", "~": r"\sim", "°": r"\circ"})
_SPREAD = "{\\scriptsize$\\,\\pm\\,$%s}"


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escaped("lr=0.1 & 50 %_{x}"))
    lr=0.1 \& 50 \%\_\{x\}
    """
    return text.translate(_SIGNS)


def latex_table(heads: Sequence[str], groups: Sequence[tuple[str, Sequence[Sequence[str]]]], caption: str) -> str:
    """A table out of cells that are LaTeX already; a group of rows may have a heading, rules stand between groups."""
    lines = [r"\begin{table}", r"\centering", f"\\caption{{{escaped(caption)}}}"]
    lines += [f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", _line(map(escaped, heads)), r"\midrule"]
    for number, (name, rows) in enumerate(groups):
        lines += [r"\midrule"] * (number > 0)
        lines += [f"\\multicolumn{{{len(heads)}}}{{l}}{{\\emph{{{escaped(name)}}}}} \\\\"] * bool(name)
        lines += [_line(row) for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def comparison_latex(comparison: Comparison, command: str = "") -> str:
    """The table of ``fedrec compare``."""
    heads = ["method", *comparison.columns, "s a run", "KiB up"]
    found = table_groups(comparison, escaped, _cell, escaped)
    groups = [(HEADINGS[group], [row[: len(heads)] for row in rows]) for group, rows in found]  # reasons are too long
    return _made_by(command) + latex_table(heads, groups, title(comparison))


def board_latex(board: Leaderboard, command: str = "") -> str:
    """A table a metric."""
    found = []
    for metric in board.metrics:
        groups = leaderboard.table_groups(board, metric, escaped, _cell)
        caption = f"{metric}: {leaderboard.heading(board)}"
        found.append(latex_table(["method", *board.names, "rank"], groups, caption))
    return _made_by(command) + "\n".join(found)


def reproduction_latex(done: Reproduction, command: str = "") -> str:
    """A table a data set: published, ours, off, strict."""
    found = []
    for panel in done.panels:
        parts: dict[bool, list[list[str]]] = {}
        for line in panel.lines:
            parts.setdefault(line.control, []).append([escaped(text) for text in line_texts(line, done)])
        groups = [("", rows) for rows in parts.values()]
        found.append(latex_table(heads_of(done), groups, f"{heading(done)}; {panel.column.label}"))
    return _made_by(command) + "\n".join(found)


def csv_latex(text: str, caption: str = "") -> str:
    """The table in a CSV text; numbers with four digits behind the point."""
    heads, *rows = csv.reader(io.StringIO(text))
    return latex_table(heads, [("", [[escaped(_short(cell)) for cell in row] for row in rows])], caption)


def _cell(cell: Cell | None) -> str:
    if cell is None or math.isnan(cell.summary.mean):
        return "--"
    mean = f"{cell.summary.mean:.4f}"
    mark = f"$^{{{cell.mark.translate(_MARKS)}}}$" if cell.mark else ""
    text = (f"\\textbf{{{mean}}}" if cell.best else mean) + mark
    return text + (_SPREAD % f"{cell.summary.spread:.4f}" if cell.summary.count > 1 else "")


def _short(cell: str) -> str:
    try:
        value = float(cell)
    except ValueError:
        return cell
    return cell if value.is_integer() or len(cell.partition(".")[2]) <= 4 else f"{value:.4f}"


def _made_by(command: str) -> str:
    """Comments: what made the table, and what it needs."""
    lines = [f"% {' '.join(command.split())}"] if command else []
    return "\n".join([*lines, r"% needs \usepackage{booktabs}"]) + "\n"


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
