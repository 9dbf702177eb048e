"""The routes of the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from fedrec import __version__
from fedrec.errors import BadInput
from fedrec.serve.asking import ALL_ITEMS, MOST_IDS, MOST_K, MOST_LISTS, Ask, Filters, QueueFull, UnknownUser
from fedrec.serve.batches import Batches
from fedrec.serve.docs_page import docs_page
from fedrec.serve.door import LOCAL, Door, error_json
from fedrec.serve.head_requests import HeadAsGet, allowed
from fedrec.serve.model import Answer, Model
from fedrec.serve.search import LONGEST, MOST_FOUND, Search

JSON = "application/json"
Words = Callable[[Any], str]
Status = Callable[[Any], int]
Headers = Callable[[Any], dict[str, str]]

K = Annotated[int, Query(ge=1, le=MOST_K, description="how many items")]
Id = Annotated[str, Field(max_length=500)] | int
IdList = Annotated[list[Id], Field(max_length=MOST_IDS)]


class Wanted(BaseModel):
    """What lists are to hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    k: int = Field(10, ge=1, le=MOST_K, description="how many items")
    exclude: IdList = Field([], description="items that are never listed")
    only: IdList | None = Field(None, description="nothing else is listed")

    def filters(self) -> Filters:
        return _filters(self.exclude, self.only)


class ForHistory(Wanted):
    """A list for somebody who was not in training."""

    history: IdList = Field(description="items that the person has, in order of time")


class ForMany(Wanted):
    """Lists for many: first those of the users, then those of the histories."""

    users: list[Id] = Field([], max_length=MOST_LISTS, description="users of the training")
    histories: list[IdList] = Field(
        [], max_length=MOST_LISTS, description="histories of people who were not in training"
    )


def service(batches: Batches, token: str | None = None, names: frozenset[str] | None = LOCAL) -> ASGIApp:
    """The whole application; ``names`` as :class:`Door` has them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batches.start()
        yield
        await batches.stop()

    app = FastAPI(
        title="fedrec", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    _errors(app)
    _routes(app, batches)
    return Door(HeadAsGet(app), batches.counts, token, names)


def _routes(app: FastAPI, batches: Batches) -> None:
    @app.post("/recommend/batch", summary="Lists for many")
    async def for_many(asked: ForMany) -> Response:
        if not 1 <= len(asked.users) + len(asked.histories) <= MOST_LISTS:
            raise BadInput(f"give users, histories or both: 1 to {MOST_LISTS} of them")
        filters = asked.filters()
        asks = [Ask(asked.k, user=str(user), filters=filters) for user in asked.users]
        asks += [Ask(asked.k, history=tuple(history), filters=filters) for history in asked.histories]
        answers = await asyncio.gather(*batches.submit(*asks))
        each = [answer if isinstance(answer, bytes) else error_json(str(answer)) for answer in answers]
        return Response(b'{"lists":[' + b",".join(each) + b"]}", media_type=JSON)

    @app.get("/recommend/", include_in_schema=False)
    @app.post("/recommend/", include_in_schema=False)
    async def for_nobody() -> Response:
        raise HTTPException(404)

    @app.get(
        "/recommend/{user:path}",
        summary="A list for a user of the training",
        dependencies=[_only("k", "exclude", "only")],
    )
    async def for_user(
        user: Annotated[str, Path(description="the user's id, as in the data", max_length=500)],
        k: K = 10,
        exclude: Annotated[list[str] | None, Query(max_length=MOST_IDS, description="an item never to list")] = None,
        only: Annotated[list[str] | None, Query(max_length=MOST_IDS, description="one of the items to list")] = None,
    ) -> Response:
        return await _listed(batches, Ask(k, user=user, filters=_filters(exclude or [], only)))

    @app.post("/recommend", summary="A list for somebody with a history")
    async def for_history(asked: ForHistory) -> Response:
        return await _listed(batches, Ask(asked.k, history=tuple(asked.history), filters=asked.filters()))

    @lru_cache(maxsize=1)
    def search_of(model: Model) -> Search:
        return Search(model.recommender.item_ids, model.recommender.titles)

    @app.get("/items/search", summary="Items by title", dependencies=[_only("q", "limit")])
    def search(
        q: Annotated[str, Query(min_length=1, max_length=LONGEST, description="words of the title, or an id")],
        limit: Annotated[int, Query(ge=1, le=MOST_FOUND, description="how many at most")] = 20,
    ) -> Response:
        return _json({"items": search_of(batches.model).find(q, limit)})

    @app.get("/health", summary="Whether it answers, and with which model")
    async def health() -> Response:
        known = batches.model.recommender
        counts = {"users": len(known.user_ids), "items": len(known.item_ids)}
        return _json({"status": "ok", "model": {**batches.model.about, **counts}})

    @app.get("/metrics", summary="Counters for Prometheus")
    async def metrics() -> Response:
        text = batches.counts.text(len(batches.queue), batches.model.about)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(docs_page(app.openapi()), media_type="text/html; charset=utf-8")


def _only(*known: str) -> Any:
    """What a query may hold: a filter that is spelt wrongly must not be passed over."""

    async def check(request: Request) -> None:  # in the event loop: a plain function would cost each request a thread
        for name in request.query_params:
            if name not in known:
                raise BadInput(f"{name[:60]!r} is no parameter of this route; it has {', '.join(known)}")

    return Depends(check)


async def _listed(batches: Batches, ask: Ask) -> Response:
    answer: Answer = await batches.submit(ask)[0]
    if isinstance(answer, BadInput):
        raise answer
    return Response(answer, media_type=JSON)


def _filters(exclude: list[Any], only: list[Any] | None) -> Filters:
    return Filters(tuple(exclude), None if only is None else tuple(only)) if exclude or only is not None else ALL_ITEMS


def _json(content: Any) -> Response:
    return Response(json.dumps(content, separators=(",", ":")), media_type=JSON)


def _errors(app: FastAPI) -> None:
    """Whatever goes wrong is one line of JSON."""

    def said(kind: type[Exception], status: Status, words: Words = str, headers: Headers = no_headers) -> None:
        async def answer(_: Request, problem: Any) -> Response:
            return Response(error_json(words(problem)), status(problem), headers(problem), JSON)

        app.add_exception_handler(kind, answer)

    def invalid(problem: Any) -> str:
        if isinstance(problem.body, bytes):
            return "the body is not said to be JSON; send Content-Type: application/json"
        first = problem.errors()[0]
        inside = [str(part) for part in first["loc"][1:] if first["type"] != "json_invalid"]
        return f"{' '.join(inside) or first['loc'][0]}: {first['msg']}"

    def invalid_status(problem: Any) -> int:
        if isinstance(problem.body, bytes):
            return 415
        return 400 if problem.errors()[0]["type"] == "json_invalid" else 422

    def http_headers(problem: Any) -> dict[str, str]:
        given = {name.lower(): value for name, value in (problem.headers or {}).items()}
        return {**given, "allow": allowed(given["allow"])} if "allow" in given else given

    said(UnknownUser, lambda _: 404)
    said(BadInput, lambda _: 422)
    said(QueueFull, lambda _: 503, headers=lambda _: {"retry-after": "1"})
    said(RequestValidationError, invalid_status, invalid)
    said(
        HTTPException,
        lambda problem: int(problem.status_code),
        lambda problem: f"{problem.detail}; GET /docs says what there is",
        http_headers,
    )
    said(Exception, lambda _: 500, lambda _: "this failed here; the service's log says why")


def no_headers(_: Any) -> dict[str, str]:
    return {}
