"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from fedrec.errors import BadInput
from fedrec.runs.atomic import (
    clear_leftovers,
    keep_file,
    keep_text,
    plain_opener,
    private_opener,
    replace_file,
    write_text,
)


def test_a_text_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def half(temporary: Any) -> None:
        temporary.write_text("ne")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        replace_file(path, half)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(temporary: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BadInput, match=r"no room to write .*a\.txt \(No space left on device\); make room"):
        replace_file(path, full)
    assert path.read_text() == "old"


@pytest.mark.parametrize("in_its_place", ["nothing", "a file"])
def test_a_folder_that_is_gone_is_said_in_one_line(tmp_path: Path, in_its_place: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()

    def gone(temporary: Path) -> None:
        temporary.unlink()
        folder.rmdir()
        if in_its_place == "a file":
            folder.write_text("another")
        temporary.write_text("new")

    for write in (gone, lambda temporary: None):
        with pytest.raises(BadInput, match="run is gone: it was moved or removed while it was written to"):
            keep_file(folder / "a.txt", write)


def test_leftovers_are_files_and_a_folder_of_such_a_name_is_left(tmp_path: Path) -> None:
    (tmp_path / ".a.json.7.tmp").write_text("half")
    (tmp_path / ".mine.tmp").mkdir()
    (tmp_path / ".link.tmp").symlink_to(tmp_path / ".mine.tmp")
    clear_leftovers(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [".mine.tmp"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.json", tmp_path / "a.json"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path, linked: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    name = tmp_path / "name"
    name.symlink_to(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_text(name if linked else pipe, "words")
    reader.join(timeout=10)
    assert heard == ["words"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_cannot_be_opened_is_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows no folder can: every run ended when its first file was there."""
    opened = os.open

    def files_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", files_only)
    write_text(tmp_path / "a.txt", "one")
    write_text(tmp_path / "a.txt", "two", private=True)
    assert (tmp_path / "a.txt").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("private", [True, False])
def test_a_link_in_a_folder_of_ours_is_replaced_itself(tmp_path: Path, there: bool, private: bool) -> None:
    """The folder may have come by mail: what its links lead to is the user's, or is not there and must not appear."""
    (tmp_path / "run").mkdir()
    target, link = tmp_path / "thesis.txt", tmp_path / "run" / "a.json"
    if there:
        target.write_text("mine")
    link.symlink_to(target)
    keep_text(link, "new", private=private)
    assert not link.is_symlink()
    assert link.read_text() == "new"
    assert (target.read_text() if target.exists() else None) == ("mine" if there else None)


def test_what_is_private_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / "thesis.txt")
    write_text(tmp_path / "a.json", "new", private=True)
    assert not (tmp_path / "thesis.txt").exists()
    assert stat.S_IMODE((tmp_path / "a.json").lstat().st_mode) == 0o600


def test_a_link_in_place_of_the_temporary_file_is_removed(tmp_path: Path) -> None:
    """Its name can be guessed: a mailed folder may hold one for every number of a process."""
    (tmp_path / f".a.json.{os.getpid()}.tmp").symlink_to(tmp_path / "thesis.txt")
    keep_text(tmp_path / "a.json", "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_pipe_in_a_folder_of_ours_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    keep_text(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").read_text() == "new"


def test_a_folder_in_place_of_a_file_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(BadInput, match="a folder of that name"):
        keep_text(tmp_path / "a.json", "new")


@pytest.mark.parametrize("opener", [plain_opener, private_opener])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_nothing_is_added_to_what_is_no_plain_file(tmp_path: Path, kind: str, opener: Any) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    path = tmp_path / "errors.log"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / ("thesis.txt" if kind == "link" else "nothing"))
    with pytest.raises(BadInput, match=r"errors\.log is a link, a pipe or a device"), open(path, "a", opener=opener):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "nothing").exists()
