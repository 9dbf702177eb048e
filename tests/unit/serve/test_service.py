"""The service over real sockets: answers, refusals, many at once, and a model that changes under load."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import re
import shutil
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fedrec as package
from command_line import Cli
from fedrec.deploy.ports import bound
from fedrec.errors import BadInput
from fedrec.experiment.open import opened
from fedrec.serve import waiting
from fedrec.serve.app import service
from fedrec.serve.asking import MOST_BYTES, Ask
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.door import Door
from fedrec.serve.http import local_names, read_token
from fedrec.serve.search import Search
from fedrec.serve.sources import RunSource
from serving import Running, running

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from load import Load, ask, many_files

TOKEN = "a-token-for-this-test-alone"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model") / "run"
    package.run("fedspectral", data="demo", rounds=2, evaluate_every=2, out=made, settings={"k": 8})
    return made


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Running]:
    with running(service(Batches(RunSource(folder), Counts()))) as found:
        yield found


def items(content: Any) -> list[str]:
    return [one["item"] for one in content["items"]]


def test_a_users_list_is_that_of_the_recommender(folder: Path, served: Running) -> None:
    model = opened(folder).recommender
    answer = served.get("/recommend/u007?k=5&exclude=i003&exclude=i004")
    assert answer.status == 200
    wanted = model.recommend("u007", 5, exclude=["i003", "i004"])
    assert answer.json["items"] == [
        {"rank": r.rank, "item": r.item, "title": r.title, "score": pytest.approx(r.score, rel=1e-6)} for r in wanted
    ]
    only = [f"i{number:03d}" for number in range(40)]
    asked = "&".join(f"only={item}" for item in only)
    assert items(served.get(f"/recommend/u007?{asked}").json) == [r.item for r in model.recommend("u007", only=only)]


def test_histories_and_batches(folder: Path, served: Running) -> None:
    model = opened(folder).recommender
    history, filters = ["i003", "i010", "i044"], {"exclude": ["i005"], "only": [f"i{n:03d}" for n in range(80)]}
    answer = served.post("/recommend", {"history": history, "k": 4, **filters})
    wanted = [r.item for r in model.recommend_history(history, 4, **filters)]
    assert items(answer.json) == wanted
    content = {"users": ["u001", "nobody", "u001"], "histories": [history, []], "k": 4, **filters}
    lists = served.post("/recommend/batch", content).json["lists"]
    assert items(lists[0]) == items(lists[2]) == [r.item for r in model.recommend("u001", 4, **filters)]
    assert "nobody" in lists[1]["error"]
    assert items(lists[3]) == wanted
    assert "at least one item" in lists[4]["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/recommend/nobody", None, 404, "no user 'nobody'"),
        ("/recommend/u001?k=0", None, 422, "k: "),
        ("/recommend/u001?k=1001", None, 422, "k: "),
        ("/recommend/u001?only=zzz", None, 422, "only: this model knows no item 'zzz'"),
        ("/recommend", {"history": ["zzz"]}, 422, "history: this model knows no item"),
        ("/recommend", {"history": []}, 422, "at least one item"),
        ("/recommend", {"history": [1.5]}, 422, "history 0"),
        ("/recommend", {"history": "i003"}, 422, "history: "),
        ("/recommend", {"history": ["i003"], "kk": 3}, 422, "kk: "),
        ("/recommend", {"history": ["i003"] * 10_001}, 422, "history: "),
        ("/recommend", {"history": ["\ud800"]}, 422, "history"),
        ("/recommend", b'{"history": [', 400, "body: JSON"),
        ("/recommend", b"\xff\xfe", 400, "body"),
        ("/recommend", b"[" * 100_000, 400, "body"),
        ("/recommend", b"x" * (MOST_BYTES + 1), 413, "larger than"),
        ("/recommend/batch", {}, 422, "1 to 1000"),
        ("/items/search", None, 422, "q: "),
        ("/nothing", None, 404, "/docs"),
        ("/health/", None, 404, "/docs"),
        ("/docs/", None, 404, "/docs"),
        ("/items/search/?q=x", None, 404, "/docs"),
        ("/recommend/", None, 404, "/docs"),
        ("/recommend/", {"history": ["i003"]}, 404, "/docs"),
        ("/health", {}, 405, "/docs"),
    ],
)
def test_what_is_wrong_is_one_line(served: Running, path: str, body: Any, status: int, said: str) -> None:
    answer = served.get(path) if body is None else served.post(path, body)
    assert (answer.status, answer.kind) == (status, "application/json")
    assert set(answer.json) == {"error"}
    assert said in answer.json["error"]
    assert len(answer.body.splitlines()) == 1
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])  # the first is what curl says
@pytest.mark.parametrize("path", ["/recommend", "/recommend/batch"])
def test_json_that_is_not_called_so_is_told_how(served: Running, path: str, kind: str) -> None:
    answer = served.ask(urllib.request.Request(served.base + path, b'{"history": ["i003"]}', {"content-type": kind}))
    assert answer.status == 415
    assert answer.json == {"error": "the body is not said to be JSON; send Content-Type: application/json"}


def test_json_without_any_kind_is_told_how(served: Running) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    wire.request("POST", "/recommend", b'{"history": ["i003"]}')
    answer = wire.getresponse()
    assert (answer.status, b"Content-Type: application/json" in answer.read()) == (415, True)
    wire.close()


def headed(served: Running, method: str, path: str) -> tuple[int, Any, bytes]:
    wire = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    try:
        wire.request(method, path)
        answer = wire.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        wire.close()


@pytest.mark.parametrize(
    "path", ["/health", "/metrics", "/docs", "/openapi.json", "/recommend/u001", "/items/search?q=i"]
)
def test_head_is_get_without_the_body(served: Running, path: str) -> None:
    status, headers, body = headed(served, "HEAD", path)
    assert (status, body) == (200, b"")
    assert headers["content-type"] == headed(served, "GET", path)[1]["content-type"]
    assert headed(served, "HEAD", "/recommend/nobody")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/health", "GET, HEAD"), ("GET", "/recommend", "POST"), ("HEAD", "/recommend", "POST")],
)
def test_a_method_that_is_not_allowed_says_which_are(served: Running, method: str, path: str, allowed: str) -> None:
    status, headers, _ = headed(served, method, path)
    assert (status, headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("extra", [1, 40])
def test_a_body_without_a_length_has_the_same_limit(served: Running, extra: int) -> None:
    """Whether or not the piece that is too much is the last one."""
    lines = ("POST /recommend HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", "", "")
    head = "\r\n".join(lines).encode()
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", served.port), 30) as wire:
        wire.sendall(head)
        answer = b""
        try:
            for _ in range(MOST_BYTES // 0x10000 + extra):
                wire.sendall(piece)
            wire.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # it need not read on
        while part := wire.recv(65_536):
            answer += part
            if b"larger than" in answer:
                break
    assert answer.startswith(b"HTTP/1.1 413")


def test_search_health_and_documents(served: Running) -> None:
    title = served.get("/recommend/u001?k=1").json["items"][0]["title"]
    found = served.get(f"/items/search?q={title.upper().replace(' ', '%20')}").json["items"]
    assert found[0]["title"] == title
    assert served.get("/items/search?q=i017").json["items"][0]["item"] == "i017"
    assert served.get("/health").json["model"]["users"] == 120
    assert set(served.get("/openapi.json").json["paths"]) >= {"/recommend", "/recommend/batch", "/items/search"}
    page = served.get("/docs").body.decode()
    assert "POST /recommend/batch" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace
    assert "https://" not in page
    regions = re.findall(r'<[^>]*tabindex="0"[^>]*>', page)
    assert len(regions) >= 4
    assert all('role="region"' in region for region in regions)
    names = [re.search('aria-label="(.+?)"', region) for region in regions]
    assert len({name[1] for name in names if name}) == len(regions)


def test_beginnings_come_first_in_a_search() -> None:
    search = Search(["1", "2", "3", "4"], ["The Heat", "Heat (1995)", "Wheatley", "Amélie"])
    assert [one["item"] for one in search.find("heat")] == ["2", "1", "3"]
    assert search.find("AMELIE")[0]["title"] == "Amélie"
    assert search.find("  ") == []
    assert Search(["a1", "b1"], None).find("1", 1) == [{"item": "a1", "title": None}]


@pytest.mark.parametrize("titles", [None, ["10 things", "Catch 1", "1 more"]])
def test_an_item_of_exactly_this_id_comes_before_all_others(titles: list[str] | None) -> None:
    assert Search(["10", "1", "100"], titles).find("1", 1)[0]["item"] == "1"


@pytest.mark.parametrize("path", ["/recommend/u001?k=1&exlude=i088", "/items/search?q=a&limt=3"])
def test_a_parameter_that_is_spelt_wrongly_is_refused(served: Running, path: str) -> None:
    """The item that was not to be listed came first."""
    answer = served.get(path)
    assert answer.status == 422
    assert "is no parameter of this route" in answer.json["error"]


def test_only_who_has_the_token_is_answered(folder: Path) -> None:
    with running(service(Batches(RunSource(folder), Counts()), TOKEN)) as closed:
        for given in ({}, {"Authorization": "Bearer another"}, {"Authorization": TOKEN}):
            assert closed.get("/recommend/u001", **given).status == 401
        assert closed.get("/metrics").status == 401
        assert closed.get("/health").status == 200
        assert closed.get("/recommend/u001", Authorization=f"Bearer {TOKEN}").status == 200


def test_another_name_for_this_machine_is_refused(served: Running) -> None:
    assert served.get("/health", Host="evil.example").status == 421
    assert served.get("/health", Host=f"localhost:{served.port}").status == 200


@pytest.mark.parametrize(
    ("host", "asked", "refused"),
    [
        ("127.0.0.9", "127.0.0.9", "127.0.0.8"),  # it refused its own address
        ("localhost", "LOCALHOST", "localhost.evil.example"),
        ("127.1", "127.0.0.1", "evil.example"),  # it took the loopback for the world
    ],
)
def test_a_service_on_the_loopback_knows_its_names(folder: Path, host: str, asked: str, refused: str) -> None:
    with bound(host, 0) as listening:
        names = local_names(listening, host)
    with running(service(Batches(RunSource(folder), Counts()), names=names)) as found:
        assert found.get("/health", Host=f"{asked}:80").status == 200
        assert found.get("/health", Host=refused).status == 421


def test_a_service_that_others_reach_has_any_name() -> None:
    with bound("0.0.0.0", 0) as listening:
        assert local_names(listening, "0.0.0.0") is None


def test_the_log_names_nobody(served: Running, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fedrec.serve.access"):
        served.get("/recommend/u031?exclude=i100")
        served.get("/recommend/somebody-else")
        served.post("/recommend", {"history": ["i044"]})
        end = time.monotonic() + 30
        while len(caplog.messages) < 3 and time.monotonic() < end:
            time.sleep(0.01)
    text = " ".join(caplog.messages)
    assert "GET /recommend/{user} 200" in text
    assert "POST /recommend 200" in text
    for private in ("u031", "i100", "i044", "somebody", "127.0.0.1"):
        assert private not in text
    counters = served.get("/metrics").body.decode()
    assert 'fedrec_requests_total{route="/recommend/{user}",status="404"}' in counters
    assert "u031" not in counters
    assert "somebody" not in counters


def test_a_thousand_at_once(folder: Path, served: Running) -> None:
    many_files()
    users = opened(folder).recommender.user_ids.tolist()
    load: Load = asyncio.run(
        ask("127.0.0.1", served.port, lambda n: f"/recommend/{users[n % 120]}", 1000, 2, keep=True)
    )
    assert load.statuses == {200: 2000}
    model = opened(folder).recommender
    assert {tuple(items(json.loads(body))) for body in load.bodies} <= {
        tuple(r.item for r in model.recommend(user)) for user in users
    }


def test_more_than_can_wait_is_refused(folder: Path) -> None:
    source = Batches(RunSource(folder), Counts(), waiting=3)
    go = threading.Event()
    answer = source.model.answer

    def slow(asks: Any) -> Any:
        assert go.wait(60)
        return answer(asks)

    source.model.answer = slow  # type: ignore[method-assign]
    with running(service(source)) as found:
        refused = found.post("/recommend/batch", {"users": ["u001"] * 4})
        assert refused.status == 503
        assert "waiting" in refused.json["error"]
        go.set()
        assert found.get("/recommend/u001").status == 200


def test_a_failure_inside_says_nothing_of_the_inside(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = Batches(RunSource(folder), Counts())
    answer = source.model.answer

    def broken(asks: list[Ask]) -> Any:
        if asks[0].user == "u002":
            raise ZeroDivisionError("secret\nvalue")
        return answer(asks)

    source.model.answer = broken  # type: ignore[method-assign, assignment]
    with running(service(source)) as found:
        failed = found.get("/recommend/u002")
        assert (failed.status, set(failed.json)) == (500, {"error"})
        assert b"secret" not in failed.body
        assert found.get("/recommend/u001").status == 200


def test_what_is_not_answered_by_the_end_may_be_asked_again() -> None:
    """It was a failure inside, with forty lines of it in the log."""
    sent: list[Any] = []

    async def ends() -> None:
        begun = asyncio.Event()

        async def works(*_: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
        asked = asyncio.create_task(Door(works, Counts())(scope, receive, send))
        await begun.wait()
        asked.cancel()
        await asked

    asyncio.run(ends())
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert "ask again" in json.loads(sent[1]["body"])["error"]


def test_a_newer_model_takes_over_under_load(folder: Path, tmp_path: Path) -> None:
    """Also while files are half replaced: nobody notices but by the lists."""
    serving, newer = tmp_path / "serving", tmp_path / "newer"
    shutil.copytree(folder, serving)
    package.run("fedspectral", data="demo", rounds=1, out=newer, settings={"k": 2})
    before, after = ([r.item for r in opened(path).recommender.recommend("u001")] for path in (serving, newer))
    assert before != after
    (serving / ".result.json.tmp").write_text("being written")
    source = Batches(RunSource(serving), Counts(), look=0.02)
    with running(service(source)) as found:

        def swap() -> None:
            for name in ("settings.yaml", "data.json", "rounds.jsonl", "model.safetensors", "data.safetensors",
                         "users.parquet", "manifest.json", "result.json"):  # fmt: skip
                shutil.copy(newer / name, serving / ".new")
                (serving / ".new").rename(serving / name)
                time.sleep(0.05)

        thread = threading.Thread(target=swap)
        thread.start()
        bodies: list[bytes] = []
        while thread.is_alive() or source.counts.loaded < 2:
            load = asyncio.run(ask("127.0.0.1", found.port, lambda n: "/recommend/u001", 50, 4, keep=True))
            assert load.statuses == {200: 200}
            bodies += load.bodies
        thread.join()
        assert items(found.get("/recommend/u001").json) == after
    lists = [items(json.loads(body)) for body in bodies]
    assert all(one in (before, after) for one in lists)
    assert lists[0] == before
    assert (serving / ".result.json.tmp").exists(), "a file that somebody writes was removed"


def test_a_newer_model_that_is_damaged_is_left_alone(folder: Path, tmp_path: Path) -> None:
    serving = tmp_path / "serving"
    shutil.copytree(folder, serving)
    source = Batches(RunSource(serving), Counts(), look=0.02)
    with running(service(source)) as found:
        (serving / "manifest.json").write_text("{}")
        time.sleep(0.2)
        assert found.get("/recommend/u001").status == 200
        shutil.rmtree(serving)
        time.sleep(0.1)
        assert found.get("/recommend/u001").status == 200
    assert source.counts.loaded == 1


def test_who_has_gone_is_not_waited_for(folder: Path) -> None:
    async def scene() -> list[int]:
        source = Batches(RunSource(folder), Counts())
        seen: list[int] = []
        answer = source.model.answer
        source.model.answer = lambda asks: (seen.append(len(asks)), answer(asks))[1]  # type: ignore[method-assign, func-returns-value]
        source.start()
        gone, stays = source.submit(Ask(1, user="u001"), Ask(1, user="u002"))
        gone.cancel()
        await stays
        await source.stop()
        return seen

    assert asyncio.run(scene()) == [1]


def test_batches_have_a_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "AT_ONCE", 8)

    async def scene() -> Counts:
        source = Batches(RunSource(folder), Counts())
        source.start()
        await asyncio.gather(*source.submit(*[Ask(1, user="u001")] * 20))
        await source.stop()
        return source.counts

    counts = asyncio.run(scene())
    assert (counts.batches, counts.asks) == (3, 20)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("none",), "is not a run's folder"),
        (("RUN", "--port", "99999"), "is not a port"),
        (("RUN", "--port", "TAKEN"), "cannot listen on 127.0.0.1"),
        (("RUN", "--host", "203.0.113.77", "--port", "0"), "cannot listen on 203.0.113.77"),
        (("RUN", "--port", "0", "--token-file", "short.txt"), "at least 16 letters"),
        (("RUN", "--port", "0", "--token-file", "none.txt"), "cannot read none.txt"),
    ],
)
def test_a_service_that_cannot_start_says_why(
    folder: Path, served: Running, tmp_path: Path, fedrec: Cli, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "short.txt").write_text("short\n")
    words = {"RUN": str(folder), "TAKEN": str(served.port)}
    done = fedrec("serve", *(words.get(option, option) for option in options))
    assert done.status == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_a_token_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert read_token(tmp_path / "token") == TOKEN
    (tmp_path / "token").write_text("two words of a token")
    with pytest.raises(BadInput, match="one word"):
        read_token(tmp_path / "token")
