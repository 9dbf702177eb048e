"""Text as numbers and as times, whole columns at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedrec.data.understood import ORDER_ONLY, UNITS, unit_name, unit_of

Bad = NDArray[np.bool_]
SINCE = " since 1970"
SECONDS, ORDER = f"seconds{SINCE}", "numbers (an order)"
DAY_FIRST, MONTH_FIRST = "dates, day first", "dates, month first"
FARTHEST = 9.2e18
"""Times must fit 64 bits."""
WHOLE = 2.0**53
"""Floats above this are no longer exact whole numbers."""
INTEGER = r"^-?[0-9]+$"
ROUNDED = r"^-?[0-9]([.,][0-9]{1,5})?E\+[1-9][0-9]$"
"""A whole number as a spreadsheet shows it, and writes it down, where it has too many digits."""
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
COMMA_NUMBER = r"^[+-]?[0-9]+,[0-9]+$"
THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$"
MILLIONS = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3}){2,}(\.[0-9]*)?$"
_CLOCK = (
    r"(?:(?:T|\s+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r"(?:\s*(?P<noon>[AaPp])\.?[Mm]\.?)?(?:\s*(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?$"
)
ISO_DATE = r"^(?P<year>[0-9]{4})[-/.](?P<month>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})" + _CLOCK
WRITTEN_DATE = r"^(?P<first>[0-9]{1,2})(?P<mark>[-/.])(?P<other>[0-9]{1,2})[-/.](?P<year>[0-9]{4})" + _CLOCK


@dataclass(frozen=True)
class Numbers:
    """A column of finite numbers."""

    values: NDArray[np.float64]
    bad: Bad
    """Rows that are no numbers."""
    unclear: Bad
    """Those of them that may be two numbers: 1,050."""
    comma: bool = False
    """Whether decimal commas were read."""
    thousands: bool = False
    """Whether commas between thousands were read."""


@dataclass(frozen=True)
class Times:
    """A column of times."""

    values: NDArray[np.int64] | NDArray[np.float64]
    bad: Bad
    """Rows whose time cannot be read."""
    kind: str
    """How they were written, for people."""
    why: str = "is neither a number nor a date"
    """What is wrong with the bad ones."""
    rounded: Bad | None = None
    """Those of them that a spreadsheet has rounded."""
    other_unit: Mapping[str, Bad] = field(default_factory=dict)
    """Those of them that are in another unit than the column, by that unit."""

    def fault(self, row: int) -> str:
        """What is wrong with a bad row."""
        if self.rounded is not None and self.rounded[row]:
            return "has been rounded by a spreadsheet; export it as a number with all digits"
        unit = next((unit for unit, rows in self.other_unit.items() if rows[row]), None)
        return self.why if unit is None else f"is in {unit} where others are in {self.kind.removesuffix(SINCE)}"


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without blanks around it; nothing (null) is empty text."""
    return pc.utf8_trim_whitespace(pc.fill_null(column, ""))


def numbers(column: pa.ChunkedArray, quoted: bool = False) -> Numbers:
    """Text as finite numbers; ``quoted``: commas part the cells of the file, so that one in a cell was quoted.

    A comma is a decimal comma, or stands between thousands where all numbers with one could be written so and
    something shows it: a second comma, a decimal point, the quotes. Otherwise it is not guessed which.
    """
    words = trimmed(column)
    none = np.zeros(len(words), np.bool_)
    try:
        values = _floats(words)
        return Numbers(values, ~np.isfinite(values), none)
    except pa.ArrowInvalid:
        pass
    words, codes = _distinct(words)
    plain = _matches(words, NUMBER)
    commas, grouped = _matches(words, COMMA_NUMBER), _matches(words, THOUSANDS)
    with_point = _matches(words, r"\.") & (plain | grouped)
    unclear = np.zeros(len(words), np.bool_)
    comma = thousands = False
    if grouped.any() and not (commas & ~grouped).any():
        thousands = quoted or bool(with_point.any() or _matches(words, MILLIONS).any())
        unclear = grouped & (not thousands)
    elif commas.any() and not with_point.any():
        comma = True
    if thousands:
        words, plain = pc.if_else(pa.array(grouped), pc.replace_substring(words, ",", ""), words), plain | grouped
    elif comma:
        words, plain = pc.replace_substring(words, ",", "."), plain | commas
    values = _floats(pc.if_else(pa.array(plain), words, "nan"))[codes]
    return Numbers(values, ~np.isfinite(values), unclear[codes], comma, thousands)


def _distinct(words: pa.ChunkedArray) -> tuple[pa.ChunkedArray, NDArray[np.int64]]:
    """Each text once, and which of them each row has: dates and ratings repeat a lot."""
    coded = pc.dictionary_encode(words).unify_dictionaries()
    codes = np.concatenate([np.asarray(chunk.indices.to_numpy(), np.int64) for chunk in coded.chunks])
    return pa.chunked_array([coded.chunk(0).dictionary]), codes


def _floats(words: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(_cast(words, pa.float64()).to_numpy(), dtype=np.float64)


def _cast(words: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """All rows as this type, or ArrowInvalid; a few rows first, because a cast that fails is slow."""
    pc.cast(words.slice(0, 100), kind)
    return pc.cast(words, kind)


def _matches(words: pa.ChunkedArray, pattern: str) -> Bad:
    return np.asarray(pc.match_substring_regex(words, pattern).to_numpy(), dtype=np.bool_)


def moments(column: pa.ChunkedArray, quoted: bool = False) -> Times:
    """Text as times: numbers as they are, dates as seconds since 1970 (UTC where no zone is written).

    ``quoted``: as for :func:`numbers`.
    """
    words = trimmed(column)
    try:
        return in_range(np.asarray(_cast(words, pa.int64()).to_numpy(), dtype=np.int64))
    except pa.ArrowInvalid:
        pass
    found = numbers(words, quoted)
    if found.bad.mean() <= 0.5:
        return _without_rounded(in_range(_exact(words, found), found.bad), words)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            when = pc.cast(_cast(words, kind), pa.int64())
        except pa.ArrowInvalid:
            continue
        return Times(np.asarray(when.to_numpy(), dtype=np.float64) / 1e6, np.zeros(len(words), np.bool_), "ISO dates")
    return _dates(words)


def _exact(words: pa.ChunkedArray, found: Numbers) -> NDArray[np.int64] | NDArray[np.float64]:
    """The good numbers as integers, where all are and some are larger than what a float holds exactly."""
    size = np.abs(np.where(found.bad, 0, found.values))
    usable = ~found.bad & (size < FARTHEST)
    if size.max() < WHOLE or (usable & ~_matches(words, INTEGER)).any():
        return found.values
    whole = pc.cast(pc.if_else(pa.array(usable), words, "0"), pa.int64())
    return np.where(usable, np.asarray(whole.to_numpy(), dtype=np.int64), np.iinfo(np.int64).max)


def _without_rounded(times: Times, words: pa.ChunkedArray) -> Times:
    """The same; of large numbers, those are bad that have lost their last digits: an order is not seen from them."""
    if times.bad.all() or not times.values[~times.bad].max() > 1e10:
        return times
    rounded = _matches(words, ROUNDED)
    return replace(times, bad=times.bad | rounded, rounded=rounded) if rounded.any() else times


def in_range(values: NDArray[np.int64] | NDArray[np.float64], bad: Bad | None = None) -> Times:
    """Times that are numbers already."""
    bad = np.zeros(len(values), np.bool_) if bad is None else bad
    with np.errstate(invalid="ignore"):
        bad = bad | ~(np.abs(values.astype(np.float64)) < FARTHEST)
    usable = values[~bad]
    unit = unit_of(usable) if len(usable) else 1
    if len(usable) and unit == 1 and float(usable.max()) < ORDER_ONLY:
        return Times(values, bad, ORDER)
    others = _in_other_units(values, bad, unit)
    return Times(values, np.logical_or.reduce([bad, *others.values()]), f"{unit_name(unit)}{SINCE}", other_unit=others)


def _in_other_units(values: NDArray[np.int64] | NDArray[np.float64], bad: Bad, unit: int) -> dict[str, Bad]:
    """Rows whose times are in a smaller unit than the column, by that unit: they would all come first."""
    found: dict[str, Bad] = {}
    bounds = [*((above, per_second) for above, per_second, _ in UNITS if per_second <= unit), (0, 1)]
    for (below, _), (above, per_second) in pairwise(bounds):
        rows = ~bad & (values > above) & (values <= below)
        if rows.any():
            found[unit_name(per_second)] = rows
    return found


def _dates(words: pa.ChunkedArray) -> Times:
    """Dates in any of the usual forms; day or month first is found from the dates themselves, never guessed."""
    iso = _fields(words, ISO_DATE) if _matches(words.slice(0, 1000), r"^[0-9]{4}[-/.]").any() else None
    if iso is not None and (iso["year"] >= 0).mean() >= 0.5:
        return _combined(iso, iso["month"], iso["day"], "ISO dates")
    written = _fields(words, WRITTEN_DATE)
    if written is None or not (written["year"] >= 0).any():
        values = np.full(len(words), np.nan)
        return Times(values, np.ones(len(words), np.bool_), "dates")
    day_first, month_first = bool((written["first"] > 12).any()), bool((written["other"] > 12).any())
    dots = bool(_matches(words, r"^[0-9]{1,2}\.").any())  # nobody writes the month first with dots
    if day_first and month_first:
        return Times(np.zeros(len(words)), written["other"] > 12, "dates", "has the month first where others do not")
    if not (day_first or month_first or dots):
        return Times(
            np.zeros(len(words)),
            written["year"] >= 0,
            "dates",
            "may have the day or the month first: write it as 2021-12-31",
        )
    if month_first:
        return _combined(written, written["first"], written["other"], MONTH_FIRST)
    return _combined(written, written["other"], written["first"], DAY_FIRST)


def _fields(words: pa.ChunkedArray, pattern: str) -> dict[str, NDArray[np.int64]] | None:
    """The numbers in a date, -1 where the row does not match or has none."""
    words, codes = _distinct(words)
    found = pc.extract_regex(words, pattern)
    if found.null_count == len(words):
        return None
    parts: dict[str, NDArray[np.int64]] = {}
    for name in (part.name for part in found.type):
        part = pc.fill_null(pc.struct_field(found, [name]), "")
        if name == "zone":
            parts[name] = _zone(part)
        elif name == "noon":
            parts[name] = np.asarray(_matches(part, "^[Pp]$"), np.int64) - np.asarray(_matches(part, "^$"), np.int64)
        elif name == "part":
            parts[name] = np.rint(1e6 * _floats(pc.binary_join_element_wise("0.", part, "0", ""))).astype(np.int64)
        elif name != "mark":
            empty = pc.equal(part, "")
            parts[name] = np.asarray(pc.cast(pc.if_else(empty, "-1", part), pa.int64()).to_numpy(), dtype=np.int64)
    return {name: values[codes] for name, values in parts.items()}


def _zone(part: pa.ChunkedArray) -> NDArray[np.int64]:
    """Seconds by which a zone is ahead of UTC."""

    def ahead(text: str) -> int:
        if not text or text[0] not in "+-":
            return 0
        return (1 if text[0] == "+" else -1) * (int(text[1:3]) * 3600 + int(text[3:].strip(":") or 0) * 60)

    zones, codes = _distinct(part)
    return np.array([ahead(text) for text in zones.to_pylist()], dtype=np.int64)[codes]


def _combined(
    fields: dict[str, NDArray[np.int64]], month: NDArray[np.int64], day: NDArray[np.int64], kind: str
) -> Times:
    """Seconds since 1970 of dates in parts."""
    year = fields["year"]
    hour, minute, second = (np.maximum(fields[name], 0) for name in ("hour", "minute", "second"))
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    good &= (hour <= 23) & (minute <= 59) & (second <= 60)
    half = fields["noon"]
    good &= (half < 0) | ((hour >= 1) & (hour <= 12))
    hour = np.where(half < 0, hour, hour % 12 + 12 * np.maximum(half, 0))
    months = (np.where(good, year, 1970) - 1970) * 12 + np.where(good, month, 1) - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + np.where(good, day, 1) - 1
    good &= days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) == months  # no 31st of June
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - fields["zone"]
    return Times(seconds + fields["part"] / 1e6, ~good, kind)
