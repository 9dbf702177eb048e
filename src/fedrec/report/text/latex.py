"""Tables for a paper: LaTeX with booktabs, the best in bold, nothing that LaTeX would read as a command."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from fedrec.report.model.comparison import Cell, Comparison, Row
from fedrec.report.model.leaderboard import Leaderboard
from fedrec.report.model.reproduction import Reproduction, heading
from fedrec.report.text import leaderboard
from fedrec.report.text.reproduction import entry_texts, heads_of, name_of
from fedrec.report.text.wording import HEADINGS, name_text, seconds_text, title, upload_text

_SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "°": r"$^\circ$", "–": "--", "…": r"\dots{}", "\n": " ", "\r": " ",
}  # fmt: skip
_SPREAD = "{\\scriptsize$\\,\\pm\\,$%s}"


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escaped("lr=0.1 & 50 %_{x}"))
    lr=0.1 \& 50 \%\_\{x\}
    """
    return "".join(_SIGNS.get(sign, sign) for sign in text)


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
    groups = [(HEADINGS[group], [_row(row, comparison) for row in rows]) for group, rows in comparison.grouped()]
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
    heads = ["row", *(head for metric in done.table.metrics for head in heads_of(metric, done))]
    found = []
    for panel in done.panels:
        parts: dict[bool, list[list[str]]] = {}
        for line in panel.lines:
            cells = [escaped(text) for entry in line.entries for text in entry_texts(entry, done)]
            parts.setdefault(line.control, []).append([escaped(name_of(line)), *cells])
        groups = [("", rows) for rows in parts.values()]
        found.append(latex_table(heads, groups, f"{heading(done)}; {panel.column.label}"))
    return _made_by(command) + "\n".join(found)


def csv_latex(text: str, caption: str = "") -> str:
    """The table in a CSV text; numbers with four digits behind the point."""
    heads, *rows = csv.reader(io.StringIO(text))
    return latex_table(heads, [("", [[escaped(_short(cell)) for cell in row] for row in rows])], caption)


def _row(row: Row, comparison: Comparison) -> list[str]:
    name = escaped(name_text(row, comparison))
    cells = [_cell(row.cells.get(metric)) for metric in comparison.columns]
    return [name, *cells, seconds_text(row), upload_text(row)]


def _cell(cell: Cell | None) -> str:
    if cell is None or math.isnan(cell.summary.mean):
        return "--"
    mean = f"{cell.summary.mean:.4f}"
    text = (f"\\textbf{{{mean}}}" if cell.best else mean) + (f"$^{{{_mark(cell.mark)}}}$" if cell.mark else "")
    return text + (_SPREAD % f"{cell.summary.spread:.4f}" if cell.summary.count > 1 else "")


def _mark(mark: str) -> str:
    return mark.replace("*", r"\ast").replace("~", r"\sim").replace("°", r"\circ")


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
