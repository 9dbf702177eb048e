"""The papers' tables as data: which method with which settings on which data set, and the values that were printed.

One YAML file a paper in ``recipes/tables``. Values stand there as the papers print them, digit by digit, one word a
metric, with a standard deviation behind ± where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import Any, Literal

from fedrec.errors import BadInput, unknown
from fedrec.recipes import contents

PAPERS = ("fedca", "fedcia", "fed3cr", "fediar", "feddae")


@dataclass(frozen=True)
class Value:
    """One printed number; percentages are fractions here, with as many digits as the paper gives."""

    number: Decimal
    spread: Decimal | None = None

    @classmethod
    def parse(cls, word: str, percent: bool = False) -> Value:
        """``"66.67±0.30"`` as a value.

        >>> str(Value.parse("66.60", percent=True).number)
        '0.6660'
        """
        number, _, spread = word.partition("±")
        shift = -2 if percent else 0
        return cls(Decimal(number).scaleb(shift), Decimal(spread).scaleb(shift) if spread else None)

    @property
    def digits(self) -> int:
        """Digits behind the point."""
        exponent = self.number.as_tuple().exponent
        return max(0, -exponent) if isinstance(exponent, int) else 0


@dataclass(frozen=True)
class Column:
    """A data set of a paper."""

    key: str
    label: str
    """As the paper calls it."""
    data: str = ""
    """What ``--data`` takes; empty where there is no such data set here."""
    missing: str = ""
    """Why there is none."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Run settings that the paper has for this data set (100 clients, say)."""


@dataclass(frozen=True)
class TableRow:
    """A line of a table: a method with the settings that the paper gives."""

    label: str
    method: str
    published: Mapping[str, tuple[Value | None, ...]]
    """By column, one value a metric; None where a figure shows it and no number is printed."""
    group: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    """Run settings of this row (a share of the training data, say)."""
    rounds: int | None = None
    """Rounds of this row, where they are not the table's (a filter without training needs one)."""
    blocked: str = ""
    """What is needed to run it that this version does not have."""

    @property
    def name(self) -> str:
        """The label, with the group where there is one."""
        return f"{self.label} ({self.group})" if self.group else self.label

    def answers_to(self, word: str) -> bool:
        """Whether ``--rows`` means this row: its label, its method, its group, or ``group/label``."""
        names = {self.label, self.method, self.group, self.name, f"{self.group}/{self.label}"}
        return word.lower() in {name.lower() for name in names if name}


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper."""

    paper: str
    number: str
    title: str
    metrics: tuple[str, ...]
    """Our names of the metrics, in the paper's order."""
    printed: tuple[str, ...]
    """The paper's names of them."""
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    protocol: str
    rounds: int | None
    """Rounds of every federated method; None where the paper does not say, and each method's recipe does."""
    kind: Literal["quality", "bytes"] = "quality"
    unit: Literal["fraction", "percent"] = "fraction"
    """How the paper prints values; here they are fractions throughout."""
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For a table of bytes: items, and interactions of the mean client, by column."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For a table of bytes: settings of all methods."""

    @property
    def name(self) -> str:
        return self.number if self.number.startswith("Figure") else f"Table {self.number}"

    def chosen(self, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> PublishedTable:
        """The table with some rows and columns only; a name that it does not have is bad input."""
        for word in rows:
            if not any(row.answers_to(word) for row in self.rows):
                known = [*(row.label for row in self.rows), *(row.method for row in self.rows)]
                raise unknown(f"row of {self.paper} {self.name}", word, dict.fromkeys(known))
        for word in columns:
            if word not in {column.key for column in self.columns}:
                raise unknown(f"column of {self.paper} {self.name}", word, [column.key for column in self.columns])
        return replace(
            self,
            rows=tuple(row for row in self.rows if not rows or any(row.answers_to(word) for word in rows)),
            columns=tuple(column for column in self.columns if not columns or column.key in columns),
        )


@dataclass(frozen=True)
class Paper:
    """A paper and those of its tables that can be made here."""

    name: str
    title: str
    protocol: str
    repeats: int
    """How often the paper repeats a run."""
    tables: tuple[PublishedTable, ...]

    def table(self, number: str) -> PublishedTable:
        """The table of this number, as the paper writes it (7, II), or a figure ("Figure 4")."""
        for table in self.tables:
            if table.number.lower() == number.lower():
                return table
        have = ", ".join(table.number for table in self.tables)
        raise BadInput(f"{self.name} has no table {number!r} that can be made here; it has {have}")


def find(name: str) -> Paper:
    """The paper of this name, or bad input with the nearest name."""
    if name not in PAPERS:
        raise unknown("paper", name, PAPERS)
    return _read(name)


@cache
def _read(name: str) -> Paper:
    content = contents("tables", f"{name}.yaml")[0]
    columns = {key: Column(key, **about) for key, about in content["columns"].items()}
    common = content.get("methods", {})
    tables = tuple(_table(content, columns, common, about) for about in content["tables"])
    return Paper(content["paper"], content["title"], content["protocol"], content["repeats"], tables)


def _table(
    content: Mapping[str, Any], columns: Mapping[str, Column], common: Mapping[str, Any], about: Mapping[str, Any]
) -> PublishedTable:
    percent = about.get("unit") == "percent"
    rows = tuple(_row(row, common, percent, len(about["metrics"])) for row in about["rows"])
    used = {key for row in rows for key in row.published}
    said: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in about.items()}
    said |= {"number": str(about["number"]), "rows": rows}
    said["columns"] = tuple(column for key, column in columns.items() if key in used)
    return PublishedTable(content["paper"], protocol=content["protocol"], rounds=content.get("rounds"), **said)


def _row(about: Mapping[str, Any], common: Mapping[str, Any], percent: bool, metrics: int) -> TableRow:
    published = {
        column: tuple(None if word == "-" else Value.parse(word, percent) for word in text.split())
        for column, text in about["published"].items()
    }
    for column, values in published.items():
        if len(values) != metrics:
            raise ValueError(f"{about['label']} on {column}: {len(values)} values for {metrics} metrics")
    settings = {**common.get(about["method"], {}), **about.get("settings", {})}
    return TableRow(**{**about, "published": published, "settings": settings})
