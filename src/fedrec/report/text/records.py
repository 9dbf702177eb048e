"""A comparison as numbers: one JSON object, or a CSV table."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from fedrec.report.model.comparison import SCHEMA, Cell, Comparison, Row
from fedrec.report.text.csv_text import csv_text
from fedrec.report.text.wording import failure_text, notes


def as_json(comparison: Comparison, command: str = "") -> dict[str, Any]:
    """The one object that ``fedrec compare --json`` writes. Numbers that do not exist are null."""
    return {
        "schema": SCHEMA,
        "protocol": comparison.protocol.name,
        "data": dict(comparison.data),
        "seeds": list(comparison.seeds),
        "columns": list(comparison.columns),
        "main": comparison.main,
        "rows": [_row(row) for row in comparison.rows],
        "chance": dict(comparison.chance),
        "leak": comparison.banner,
        "flaws": list(comparison.protocol.flaws),
        "notes": notes(comparison),
        "command": command,
    }


def _row(row: Row) -> dict[str, Any]:
    first = row.runs[0].result if row.runs else {}
    return {
        "method": row.method,
        "group": row.group,
        "control": row.control,
        "seeds": [run.seed for run in row.runs],
        "mean": {name: _number(cell.summary.mean) for name, cell in row.cells.items()},
        "spread": {name: _number(cell.summary.spread) for name, cell in row.cells.items()},
        "values": {name: [_number(run.test(name)) for run in row.runs] for name in row.cells},
        "significance": {name: _significance(cell) for name, cell in row.cells.items() if _tested(cell)},
        "rounds": [run.result["rounds"] for run in row.runs],
        "selected_round": [run.result["selected_round"] for run in row.runs],
        "seconds": _number(row.seconds) if row.runs else None,
        "bytes": {way: _number(row.bytes(way)) for way in ("upload", "download")} if row.runs else None,
        "privacy": first.get("privacy"),
        "privacy_card": first.get("privacy_card"),
        "secure": first.get("secure"),
        "settings": {key: value for key, value in first.get("settings", {}).items() if key != "seed"},
        "folders": [str(run.path) for run in row.runs if run.path is not None],
        "failures": [{"seed": failure.seed, "reason": failure.reason} for failure in row.failures],
    }


def _tested(cell: Cell) -> bool:
    return cell.best or cell.against_best is not None or cell.against_floor is not None


def _significance(cell: Cell) -> dict[str, Any]:
    return {
        "best": cell.best,
        "mark": cell.mark,
        "against_best": asdict(cell.against_best) if cell.against_best else None,
        "against_popularity": asdict(cell.against_floor) if cell.against_floor else None,
    }


def as_csv(comparison: Comparison) -> str:
    """One line a method: mean and spread of every metric of the protocol, costs, failures."""
    shown = dict.fromkeys(comparison.columns)
    metrics = [*shown, *(name for name in comparison.protocol.metrics.names if name not in shown)]
    heads = ["method", "group", "seeds"]
    heads += [f"{name} {what}" for name in metrics for what in ("mean", "spread")]
    heads += ["seconds", "upload_bytes", "download_bytes", "failed"]
    rows = []
    for row in comparison.rows:
        numbers: list[Any] = []
        for name in metrics:
            cell = row.cells.get(name)
            numbers += [_number(cell.summary.mean), _number(cell.summary.spread)] if cell else [None, None]
        costs = [row.seconds, row.bytes("upload"), row.bytes("download")] if row.runs else [None] * 3
        rows.append([row.method, row.group, len(row.runs), *numbers, *costs, failure_text(row.failures)])
    return csv_text(heads, rows)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
