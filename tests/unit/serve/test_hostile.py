"""What a stranger sends: the service answers in one line or closes, and goes on."""

from __future__ import annotations

import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import fedrec as package
from fedrec.serve import door, heads
from fedrec.serve.app import service
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.sources import RunSource
from serving import Running, running

TOKEN = "a-token-for-this-test-alone"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("model") / "run"
    package.run("fedspectral", data="demo", rounds=1, out=folder, settings={"k": 4})
    with running(service(Batches(RunSource(folder), Counts()))) as found:
        yield found


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that asks for a token."""
    folder = tmp_path_factory.mktemp("closed") / "run"
    package.run("fedspectral", data="demo", rounds=1, out=folder, settings={"k": 4})
    with running(service(Batches(RunSource(folder), Counts()), TOKEN)) as found:
        yield found


def raw(served: Running, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What comes back for bytes as they are, until the other side closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", served.port), 30) as wire:
        try:
            for piece in pieces:
                wire.sendall(piece)
                time.sleep(pause)
            while part := wire.recv(65_536):
                answer += part
        except OSError:
            pass  # closed while it was being sent
    return answer


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: localhost", "Connection: close", *headers, "", ""]).encode() + body


def post(body: bytes, path: str = "/recommend", kind: str = "application/json") -> bytes:
    return request(f"POST {path} HTTP/1.1", f"Content-Type: {kind}", f"Content-Length: {len(body)}", body=body)


BODIES = {
    "NaN": b'{"history": ["i003"], "k": NaN}',
    "infinity": b'{"history": ["i003"], "k": 1e999}',
    "negative k": b'{"history": ["i003"], "k": -1}',
    "true for a number": b'{"history": ["i003"], "k": true}',
    "text for a number": b'{"history": ["i003"], "k": "5"}',
    "a number of 5,000 digits": b'{"history": [' + b"9" * 5_000 + b"]}",
    "deep lists": b'{"history": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "null": b"null",
    "a list": b"[]",
    "nothing": b"",
    "half of a letter": b'{"history": ["\\ud800"]}',
    "no UTF-8": b'{"history": ["\xff"]}',
    "a zero byte": b'{"history": ["i003\\u0000"]}',
    "a list among items": b'{"history": [["i003"]]}',
    "two keys alike": b'{"history": ["i003"], "history": {}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["/recommend", "/recommend/batch"])
def test_a_hostile_body_gets_one_line(served: Running, path: str, body: bytes) -> None:
    head, _, content = raw(served, post(body, path)).partition(b"\r\n\r\n")
    assert head.split()[1] in (b"400", b"422")
    assert set(json.loads(content)) == {"error"}
    assert len(content) < 1_000
    assert len(content.splitlines()) == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/recommend/../../etc/passwd", 404),
        ("/recommend/..%2f..%2fetc%2fpasswd", 404),
        ("/recommend/%00", 404),
        ("/recommend/%ed%a0%80", 404),
        ("/recommend/%F0%9F%8D%BF", 404),
        ("/recommend/u001?k=-1", 422),
        ("/recommend/u001?k=NaN", 422),
        ("/recommend/u001?k=" + "9" * 5_000, 422),
        ("/recommend/u001?k=%D9%A5", 422),  # an Arabic five
        ("/recommend/" + "u" * 501, 422),
        ("/items/search?q=%ed%a0%80", 200),
        ("/items/search?q=" + "a" * 201, 422),
        ("/items/search?q=(((((((((", 200),
        ("/recommend/\xff", 400),
    ],
)
def test_a_hostile_path_gets_an_answer(served: Running, path: str, status: int) -> None:
    lines = ("Host: localhost", "Connection: close", "", "")
    answer = raw(served, f"GET {path} HTTP/1.1\r\n".encode("latin-1") + "\r\n".join(lines).encode())
    assert answer.split()[1] == str(status).encode()
    assert b"root:" not in answer
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    "start",
    [
        b"GET /" + b"a" * 70_000,
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000,
    ],
)
def test_a_head_has_a_size(served: Running, start: bytes) -> None:
    answer = raw(served, start)
    assert answer.startswith(b"HTTP/1.1 431")
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}


@pytest.mark.parametrize("sent", ["nothing", "half a head", "a head twice", "an empty line after", "half a body"])
def test_who_sends_slowly_is_not_waited_for(served: Running, sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(door, "BODY_SECONDS", 0.1)
    pieces = {
        "nothing": b"",
        "half a head": b"GET /health HTTP/1.1\r\nHost: loc",
        "a head twice": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HT",
        "an empty line after": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "half a body": post(b"x" * 100)[:-50],
    }
    if sent == "an empty line after":  # it ended the wait for the next request, and began none
        with socket.create_connection(("127.0.0.1", served.port), 3) as wire:
            wire.sendall(pieces[sent])
            assert wire.recv(65_536).startswith(b"HTTP/1.1 200")
            wire.sendall(b"\r\n")
            assert wire.recv(1) == b""
        return
    raw(served, pieces[sent])  # comes back, because the other side closes
    assert served.get("/health").status == 200


@pytest.mark.parametrize("reads", [True, False])
def test_who_does_not_read_is_not_waited_for(served: Running, reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small body is answered by megabytes, which were kept for as long as their reader liked."""
    if not reads:
        monkeypatch.setattr(heads, "READ_SECONDS", 0.2)
    over, lost = threading.Event(), heads.LimitedHeads.connection_lost

    def noticed(self: heads.LimitedHeads, problem: Exception | None) -> None:
        lost(self, problem)
        over.set()

    monkeypatch.setattr(heads.LimitedHeads, "connection_lost", noticed)
    body = json.dumps({"users": ["u001"] * 1000, "k": 1000}).encode()
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        wire.settimeout(60)
        wire.connect(("127.0.0.1", served.port))
        wire.sendall(post(body, "/recommend/batch"))
        if not reads:
            assert over.wait(60)
        answer = bytearray()
        try:
            while part := wire.recv(1 << 20):
                answer += part
        except ConnectionError:
            pass
    head, _, content = bytes(answer).partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length: ")[1].split()[0])
    assert (len(content) == size) == reads
    assert served.get("/health").status == 200


def dribble(served: Running, head: bytes, most: float) -> tuple[bytes, float, float]:
    """What is answered to a body that comes byte by byte, and the seconds to the answer and to the end."""
    answer, began, answered = b"", time.monotonic(), most
    with socket.create_connection(("127.0.0.1", served.port), 30) as wire:
        wire.sendall(head)
        wire.settimeout(0.05)
        while time.monotonic() - began < most:
            try:
                part = wire.recv(65_536)
                if not part:
                    break
                answer, answered = answer + part, min(answered, time.monotonic() - began)
            except TimeoutError:
                try:
                    wire.sendall(b"x")
                except OSError:
                    break
            except OSError:
                break
    return answer, answered, time.monotonic() - began


SLOW = ("Content-Type: application/json", "Content-Length: 1000000")


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("POST /recommend", SLOW, 401),
        ("POST /recommend", ("Transfer-Encoding: chunked",), 401),
        ("POST /recommend", SLOW, 421),
        ("POST /recommend", (f"Authorization: Bearer {TOKEN}", "Content-Length: 9000000000"), 413),
        ("GET /health", SLOW, 200),
        ("GET /nothing", (f"Authorization: Bearer {TOKEN}", *SLOW), 404),
    ],
)
def test_who_is_answered_cannot_stay_by_sending_on(
    closed: Running, line: str, headers: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands who sent a byte now and then, without a token, held every place of the service."""
    monkeypatch.setattr(door, "DRAIN_SECONDS", 0.4)
    host = "evil.example" if status == 421 else "localhost"
    head = "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()
    answer, answered, ended = dribble(closed, head, 6.0)
    assert answer.split()[1] == str(status).encode()
    assert answer.partition(b"\r\n\r\n")[0].lower().count(b"connection: close") == 1
    assert answered < 0.3
    assert ended < 3.0


def test_a_whole_body_has_its_time_too(closed: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "WHOLE_SECONDS", 0.5)
    head = "\r\n".join(["POST /recommend HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", *SLOW, "", ""])
    _, _, ended = dribble(closed, head.encode(), 6.0)
    assert ended < 3.0


def test_who_still_sends_gets_to_read_why_not(closed: Running) -> None:
    """The answer is there before the body is: a connection that ended at once would take it away again."""
    for size in (1 << 20, 6 << 20):
        head = f"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", closed.port), 30) as wire:
            wire.sendall(head.encode())
            for _ in range(size >> 16):
                wire.sendall(b"x" * (1 << 16))
                time.sleep(0.002)
            assert wire.recv(65_536).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(served: Running, sent: bytes) -> None:
    answer = raw(served, sent)
    assert answer.split()[1][:1] == b"4"
    assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error"}
    assert served.get("/health").status == 200


@pytest.mark.parametrize(
    "sent",
    [
        request("GET /recommend/u001 HTTP/1.1"),
        request("GET /recommend/nobody HTTP/1.1"),
        request("GET /docs HTTP/1.1"),
        request("DELETE /health HTTP/1.1"),
        post(b'{"history": ["i003"]}'),
        post(b"{"),
        b"GET / HTTP/9.9\r\n\r\n",
    ],
)
def test_nobody_on_the_way_keeps_an_answer(served: Running, sent: bytes) -> None:
    head = raw(served, sent).partition(b"\r\n\r\n")[0].lower()
    assert head.count(b"cache-control: no-store") == 1


def test_an_unknown_item_costs_next_to_nothing(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest id in a catalogue of 50,000 took a second, for each list of a batch, while everybody else waited."""

    def searched(*_: object) -> str:
        raise AssertionError("somebody's ids are compared with the whole catalogue")

    monkeypatch.setattr("fedrec.experiment.recommend.nearest", searched)
    for asked in ({"histories": [["i00"]]}, {"histories": [["i003"]], "only": ["i00"]}):
        lists = served.post("/recommend/batch", asked).json["lists"]
        assert "knows no item 'i00'; it has 160 items" in lists[0]["error"]
    assert "knows no item 'i00'" in served.get("/recommend/u001?exclude=i00").json["error"]


def test_every_wrong_token_is_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time says nothing about a token: it is compared by the function made for that, whatever its length."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def watched(given: bytes, wanted: bytes) -> bool:
        compared.append((given, wanted))
        return bool(real(given, wanted))

    monkeypatch.setattr(hmac, "compare_digest", watched)
    guard = door.Door(None, Counts(), "a-token-of-this-test")  # type: ignore[arg-type]
    for given in (b"", b"Bearer a", b"Bearer a-token-of-this-tesX", b"Bearer \xff", b"Bearer a-token-of-this-test"):
        headers = [(b"host", b"localhost"), (b"authorization", given)]
        refused = guard.refusal({"type": "http", "path": "/metrics", "headers": headers})
        assert (refused is None) == given.endswith(b"test")
    assert len(compared) == 5
