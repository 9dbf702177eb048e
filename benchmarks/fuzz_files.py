"""Damaged data files for the fuzz runner: every reader, every packing, damage of bytes, of cells and of sizes.

A file is accepted (and described, so that what follows the reader is tried too) or refused with one line of at most
300 characters. Whatever else happens is unclean.
"""

from __future__ import annotations

import gzip
import io
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from fedrec.data import limits
from fedrec.data.describe import describe
from fedrec.data.load import load
from fedrec.errors import BadInput

ROWS = 40
ODD_CELLS = (
    b"", b" ", b"\t", b"nan", b"inf", b"-1", b"1e308", b"1e-400", b"1e999", b"99999999999999999999", b"0x10", b"1_0",
    b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\x00", b"\x1f", b"\x1c", b"\x85", b"\xc2\x85",
    b"\xe2\x80\xa8",
    b'"', b'""', b"'", b"\\", b",", b";", b"::", b"\r", b"\r\n", b"\n\n", b"user", b"item", b"2018-02-31",
    b"31/12/2018",
    b"12/31/2018", b"01/02/2018", b"2018-01-01T00:00:00+14:00", b"0000-00-00", b"9999-12-31", b"12:00 PM", b"7,5",
    b"9223372036854775807", b"-9223372036854775808", b"9" * 300, b"9" * 5000, b"x" * 300, b"x" * 100_000,
    "\u202e".encode(), "\ufeff".encode(), b"__proto__", b"../../etc/passwd", b"%s%n", b"null", b"None", b"NA", b"true",
)  # fmt: skip


class Files:
    """Sound files of every format, damaged one after another."""

    doing = "?"

    def __init__(self) -> None:
        self.sound: list[tuple[str, bytes]] = []
        self.damage: list[Callable[[random.Random, bytes], bytes]] = [
            flip, cut, repeat, insert, swap, shuffle_lines, odd_cell, odd_cell, odd_cell, blow_up, recode, garbage,
            join_lines, none,
        ]  # fmt: skip

    def prepare(self, folder: Path) -> None:
        """Make the sound files, load each once, so that libraries are in memory before it is measured."""
        self.folder = folder
        self.sound = sound_files()
        for name, data in self.sound:
            self._load(name, data, "accepted")

    def attempt(self, draw: random.Random) -> str:
        """Damage one file, once or a few times, pack it or not, and load it."""
        name, data = draw.choice(self.sound)
        steps = [draw.choice(self.damage) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        for step in steps:
            data = step(draw, data)
        packing = draw.choice(("", "", "", "gz", "zip")) if not name.endswith(".parquet") else ""
        self.doing = f"{name} {packing} {steps[0].__name__}".replace("  ", " ")
        if packing:
            name, data = f"{name}.{packing}", packed(draw, packing, name, data)
        return self._load(name, data)

    def _load(self, name: str, data: bytes, must: str | None = None) -> str:
        target = self.folder / name
        split = target.parent != self.folder
        if split:  # the other parts stay sound
            target.parent.mkdir()
            for part, whole in SPLIT.items():
                if not target.name.startswith(part):
                    (target.parent / f"{part}.csv").write_bytes(whole)
        target.write_bytes(data)
        try:
            describe(load(str(target.parent if split else target)))
        except BadInput as refusal:
            said = str(refusal)
            if "\n" in said or len(said) > limits.MESSAGE or must:
                raise AssertionError(f"refused with {said!r}") from refusal
            return "refused"
        finally:
            if split:
                shutil.rmtree(target.parent)
            else:
                target.unlink()
        return "accepted"


# -- sound files ------------------------------------------------------------------------------------

SPLIT = {
    "train": b"user,item\na,1\na,4\nb,2\nb,5\n",
    "valid": b"user,item\na,2\nb,3\n",
    "test": b"user,item\na,3\nb,1\n",
}


def rows() -> list[tuple[int, int, int, int]]:
    return [(user % 7 + 1, 3 * user % 11 + 1, user % 5 + 1, 881_250_949 + 37 * user) for user in range(ROWS)]


def table(mark: str, header: str = "") -> bytes:
    lines = [mark.join(str(cell) for cell in row) for row in rows()]
    return "\n".join(([header] if header else []) + lines + [""]).encode()


def sound_files() -> list[tuple[str, bytes]]:
    """A name and contents for every reader."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = list(zip(*rows(), strict=True))
    texts = {
        "user": [f"u{user}" for user in columns[0]],
        "item": [f"i{item}" for item in columns[1]],
        "rating": [float(rating) for rating in columns[2]],
        "time": pa.array(columns[3]).cast(pa.timestamp("s")),
        "title": [f"Title {item}" for item in columns[1]],
    }
    numbers = {"user": columns[0], "item": columns[1], "rating": columns[2], "timestamp": columns[3]}
    made: list[tuple[str, bytes]] = []
    for number, compression in enumerate(("snappy", "zstd", "none", "gzip")):
        out = io.BytesIO()
        parquet.write_table(pa.table(numbers if number % 2 else texts), out, compression=compression)
        made.append((f"p{number}.parquet", out.getvalue()))
    dated = "\n".join(f"{u};{i};{r},5;{1 + n % 28:02d}.03.2021 10:00" for n, (u, i, r, _) in enumerate(rows()))
    iso = "\n".join(f'"u{u}","i{i}","2021-03-{1 + n % 28:02d}"' for n, (u, i, _, _) in enumerate(rows()))
    reviews = "\n".join(
        f'{{"user_id":"u{u}","business_id":"b{i}","stars":{r},"date":"2018-07-07 22:09:11"}}' for u, i, r, _ in rows()
    )
    checkins = "\n".join(
        f"{u}\tv{i}\tc\tBridge\t40.7\t-74.0\t-240\tTue Apr 03 18:00:{n % 60:02d} +0000 2012"
        for n, (u, i, _, _) in enumerate(rows())
    )
    sequences = "\n".join(f"{user} " + " ".join(str(item) for item in range(1, 3 + user % 9)) for user in range(1, 30))
    split = [(f"split/{part}.csv", data) for part, data in SPLIT.items()]
    return [
        *made,
        *split,
        ("a.csv", table(",", "user,item,rating,timestamp")),
        ("headless.csv", table(",")),
        ("iso.csv", f"user,item,date\n{iso}\n".encode()),
        ("dated.csv", f"CustomerID;SKU;rating;purchased_at\n{dated}\n".encode()),
        ("wide.csv", table("|", "user|item|rating|time")),
        ("utf16.csv", table(",", "user,item,rating,timestamp").decode().encode("utf-16")),
        ("a.tsv", table("\t", "user\titem\trating\ttimestamp")),
        ("a.txt", table(" ")),
        ("a.inter", table("\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float")),
        ("u.data", table("\t")),
        ("ratings.dat", table("::")),
        ("user_artists.dat", "\n".join(f"{u}\t{i}\t{r}" for u, i, r, _ in rows()).encode()),
        ("BX-Book-Ratings.csv", "\n".join(f'"{u}";"{i}";"{r}"' for u, i, r, _ in rows()).encode()),
        ("QB-article.csv", b"user_id,item_id,click\n" + "\n".join(f"{u},{i},1" for u, i, _, _ in rows()).encode()),
        ("MicroLens-100k_pairs.csv", "\n".join(f"{u},{i},{t}552" for u, i, _, t in rows()).encode()),
        ("dataset_TSMC2014_NYC.txt", checkins.encode()),
        ("review.json", reviews.encode()),
        ("sequences.txt", sequences.encode()),
    ]


# -- damage -----------------------------------------------------------------------------------------


def at(draw: random.Random, data: bytes) -> int:
    return draw.randrange(len(data) + 1)


def flip(draw: random.Random, data: bytes) -> bytes:
    """Flip a few bits."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(draw: random.Random, data: bytes) -> bytes:
    """Keep a piece."""
    first, last = sorted((at(draw, data), at(draw, data)))
    return draw.choice((data[:last], data[first:], data[:first] + data[last:]))


def repeat(draw: random.Random, data: bytes) -> bytes:
    """Say a piece again, many times."""
    first, last = sorted((at(draw, data), at(draw, data)))
    return data[:last] + data[first:last] * draw.choice((1, 2, 50)) + data[last:]


def insert(draw: random.Random, data: bytes) -> bytes:
    """Put random bytes somewhere."""
    where = at(draw, data)
    return data[:where] + draw.randbytes(draw.choice((1, 2, 16, 256))) + data[where:]


def swap(draw: random.Random, data: bytes) -> bytes:
    """Put one byte for another everywhere."""
    if not data:
        return data
    return data.replace(bytes([draw.choice(data)]), bytes([draw.randrange(256)]))


def shuffle_lines(draw: random.Random, data: bytes) -> bytes:
    """Lines in another order, some twice, some not at all."""
    lines = data.split(b"\n")
    return b"\n".join(draw.choice(lines) for _ in lines)


def odd_cell(draw: random.Random, data: bytes) -> bytes:
    """Put an odd value for a cell."""
    for mark in (b"\t", b"::", b";", b",", b"|", b" ", b":"):
        if mark in data:
            cells = data.split(mark)
            where = draw.randrange(len(cells))
            line_end = b"\n" if b"\n" in cells[where] else b""
            cells[where] = draw.choice(ODD_CELLS) + line_end + cells[where].partition(b"\n")[2] * bool(line_end)
            return mark.join(cells)
    return draw.choice(ODD_CELLS) + data


def blow_up(draw: random.Random, data: bytes) -> bytes:
    """Put a lot of one byte somewhere: long lines, long cells, a head of white space, many columns."""
    where = draw.choice((0, at(draw, data), len(data)))
    filler = draw.choice((b" ", b"\n", b",", b"0", b"x", b'"', b"\0", b"a,", b"\xff", b"[", b"a\n", b"1 "))
    return data[:where] + filler * draw.choice((100, 100, 5000, 5000, 5000, 200_000, 200_000, 1_500_000)) + data[where:]


def recode(draw: random.Random, data: bytes) -> bytes:
    """The same text in another encoding, or with a mark it does not keep to."""
    if draw.random() < 0.3:
        return draw.choice((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xff\xfe\x00\x00")) + data
    text = data.decode("latin-1").replace("1", draw.choice(("1", "é", "ß€", "日")))
    return text.encode(draw.choice(("utf-16", "utf-16-le", "utf-32", "cp1252", "utf-8", "utf-7")), "replace")


def garbage(draw: random.Random, data: bytes) -> bytes:
    """Something else altogether."""
    return draw.randbytes(draw.choice((0, 1, 10, 1000, 70_000)))


def join_lines(draw: random.Random, data: bytes) -> bytes:
    """Take out or change line ends."""
    return data.replace(b"\n", draw.choice((b"", b"\r", b"\r\n", b"\n\n", b",", b"\n ")))


def none(draw: random.Random, data: bytes) -> bytes:
    """No damage, so that packing alone is tried."""
    return data


def packed(draw: random.Random, packing: str, name: str, data: bytes) -> bytes:
    """The file as gzip or zip; some hold far more than they should, or lie about it, or are damaged."""
    if draw.random() < 0.01:
        data = data + b"\n" * draw.choice((10**6, 10**7, 10**8))
    if packing == "gz":
        whole = gzip.compress(data, 1)
    else:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            inside = draw.choice((name, name, name, "../" + name, "/etc/" + name, "C:\\" + name))
            entry = zipfile.ZipInfo(inside)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = draw.choice((0o100644, 0o100644, 0o120777)) << 16
            archive.writestr(entry, data)
            if draw.random() < 0.1:
                archive.writestr("other.csv", data)
        whole = out.getvalue()
    return draw.choice((none, none, flip, cut, insert))(draw, whole)
