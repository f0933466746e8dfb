"""The application: the page, the API, and which refusal becomes which answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from treelm.errors import TreelmError, UnsupportedTask, UsageError
from treelm.extras import import_extra
from treelm.version import __version__
from treelm.view.page_style import page_style
from treelm.web.answers import (
    CompareAnswer,
    ErrorAnswer,
    JudgeAnswer,
    ModelAnswer,
    ModelsAnswer,
    SampleAnswer,
    StatesAnswer,
    SurprisalAnswer,
    TreesAnswer,
)
from treelm.web.guard import Guard
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels, View
from treelm.web.parses import answer_states, answer_trees
from treelm.web.questions import (
    CompareQuestion,
    JudgeQuestion,
    LoadQuestion,
    SampleQuestion,
    StatesQuestion,
    SurprisalQuestion,
    TreesQuestion,
)
from treelm.web.refusals import Refusal
from treelm.web.surprisal import MOST_DRAWN, answer_compare, answer_surprisal, surprisal_of
from treelm.web.texts import read_text
from treelm.web.verdicts import answer_judge, answer_sample
from treelm.web.work_queue import RETRY_AFTER, Busy, TooSlow, WorkQueue

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

Answer = TypeVar("Answer")

#: Files of the page, by address.
_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/api": ("api.html", "text/html; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"/{name}": (name, "text/css; charset=utf-8") for name in ("playground.css",)},
    **{
        f"/{name}": (name, "text/javascript; charset=utf-8")
        for name in (
            "playground.js",
            "models.js",
            "views.js",
            "address.js",
            "ask.js",
            "draw.js",
            "export.js",
            "api.js",
        )
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": meaning}
    for status, meaning in {
        400: "not JSON",
        404: "no such model",
        413: "too large",
        422: "cannot be answered",
        503: "busy, too slow, or still loading a model: ask again after Retry-After seconds",
    }.items()
}
#: What is said where nothing of ours was asked.
_CODES = {
    400: ("E_JSON", "the body is not JSON."),
    404: ("E_NO_PAGE", "there is nothing at this address."),
    405: ("E_METHOD", "this address is asked in another way; see /api."),
}
#: Sentences of a stream that a thread works on before others have their turn.
_AT_ONCE = 8


def create_app(
    models: OfferedModels, limits: ServerLimits, *, hosts: Iterable[str] | None = None
) -> Any:
    """Return the server as an ASGI application.

    Args:
        models: What it offers.
        limits: What it takes.
        hosts: Names by which it may be called; None for any.

    Raises:
        MissingExtra: without FastAPI, which the extra ``web`` brings.
    """
    fastapi: Any = import_extra("fastapi", "Serving the playground")
    queue = WorkQueue(limits.threads, limits.queue, limits.seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        queue.close()

    app = fastapi.FastAPI(
        title="treelm",
        version=__version__,
        summary="Surprisal, trees, parser states, verdicts and samples of syntactic models.",
        docs_url=None,  # both would load scripts of others
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.queue, app.state.models = queue, models
    _answer_errors(app)
    _add_page(app)
    _add_api(app, models, limits, queue)
    app.add_middleware(Guard, limits=limits, hosts=hosts)
    return app


def _add_page(app: FastAPI) -> None:
    """Add the files of the page, read once."""
    response = import_extra("fastapi.responses", "Serving the playground").Response
    folder = files("treelm.web") / "page"
    contents = {
        address: ((folder / name).read_bytes(), kind) for address, (name, kind) in _PAGE.items()
    }
    style = page_style(":root[data-theme=dark]").encode()
    contents["/pictures.css"] = (style, "text/css; charset=utf-8")
    for address, (content, kind) in contents.items():
        app.add_api_route(
            address,
            partial(_file, response, content, kind),
            methods=["GET", "HEAD"],
            include_in_schema=False,
            response_model=None,
        )


async def _file(response: Any, content: bytes, kind: str) -> Any:
    return response(content, media_type=kind)


def _add_api(app: FastAPI, models: OfferedModels, limits: ServerLimits, queue: WorkQueue) -> None:
    async def answered(function: Callable[..., Answer], question: Any, view: View) -> Answer:
        def work(ticket: object) -> Answer:
            return function(question, models, limits, ticket)

        await _loaded(models, question, view, limits)
        return await queue.do(work)

    costs = asdict(limits)
    post = partial(app.post, responses=_ERRORS)

    @app.get("/api/models")
    async def list_models() -> ModelsAnswer:
        """Return the models that can be asked, how far each is, and the limits of the server."""
        return ModelsAnswer(version=__version__, models=models.described(), limits=costs)

    @app.post("/api/load", responses={404: _ERRORS[404]})
    async def load(question: LoadQuestion) -> ModelAnswer:
        """Begin to load a model of /api/models, which says when it is there.

        A question that names a model does the same, and waits a while for it.
        """
        return models.load(question.model)

    @app.get("/api/health")
    async def health() -> dict[str, int | str]:
        """Return that the server is there, and how many requests it has in hand."""
        return {"status": "ok", "requests": queue.inside}

    @post("/api/surprisal")
    async def surprisal(question: SurprisalQuestion) -> SurprisalAnswer:
        """Return the surprisal of every word of a text, by several models."""
        return await answered(answer_surprisal, question, "surprisal")

    @post("/api/trees")
    async def trees(question: TreesQuestion) -> TreesAnswer:
        """Return the best trees of a sentence, with the probabilities of their brackets."""
        return await answered(answer_trees, question, "trees")

    @post("/api/states")
    async def states(question: StatesQuestion) -> StatesAnswer:
        """Return the states of an incremental parser after each word of a sentence."""
        return await answered(answer_states, question, "states")

    @post("/api/compare")
    async def compare(question: CompareQuestion) -> CompareAnswer:
        """Return two sentences side by side: their words paired, and how surprisal differs."""
        return await answered(answer_compare, question, "surprisal")

    @post("/api/judge")
    async def judge(question: JudgeQuestion) -> JudgeAnswer:
        """Return whether sentences are good, and the pieces of trees that decided."""
        return await answered(answer_judge, question, "judge")

    @post("/api/sample")
    async def sample(question: SampleQuestion) -> SampleAnswer:
        """Return sentences sampled from a model."""
        return await answered(answer_sample, question, "sample")

    _add_stream(app, models, limits, queue)


async def _loaded(models: OfferedModels, question: Any, view: View, limits: ServerLimits) -> None:
    """Wait for the models of a question, for half of its time."""
    asked = [question.model] if hasattr(question, "model") else question.models
    await models.wait_for(models.chosen(asked, view), limits.seconds / 2)


def _add_stream(
    app: FastAPI, models: OfferedModels, limits: ServerLimits, queue: WorkQueue
) -> None:
    responses = import_extra("fastapi.responses", "Serving the playground")

    @app.post("/api/stream", responses=_ERRORS, response_model=None)
    async def stream(question: SurprisalQuestion) -> Any:
        """Return a long text sentence by sentence, each a line of JSON, as /api/surprisal has them.

        A line with a code and a message instead says why there is no more.
        """
        await _loaded(models, question, "surprisal", limits)
        chosen = models.several(question.models, "surprisal")
        text = await queue.do(
            lambda _: read_text(
                question.text,
                tokenized=question.tokenized,
                words=limits.stream_words,
                sentence_words=limits.sentence_words,
            )
        )

        async def lines() -> AsyncIterator[bytes]:
            for first in range(0, len(text), _AT_ONCE):
                some = list(enumerate(text[first : first + _AT_ONCE], start=first))

                def work(ticket: Any, some: Any = some) -> bytes:
                    return b"".join(
                        surprisal_of(
                            words,
                            chosen,
                            question,
                            ticket,
                            eos=question.eos,
                            drawn=place < MOST_DRAWN,
                        )
                        .model_dump_json()
                        .encode()
                        + b"\n"
                        for place, words in some
                    )

                try:
                    yield await _patiently(queue, work, limits.seconds)
                except (Busy, TooSlow, TreelmError) as error:
                    yield json.dumps(_refusal_of(error)[1]).encode() + b"\n"
                    return

        return responses.StreamingResponse(lines(), media_type="application/jsonl")


async def _patiently(queue: WorkQueue, work: Callable[..., bytes], seconds: float) -> bytes:
    """Return what a piece of a stream gives; one that has begun waits for its turn."""
    end = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await queue.do(work)
        except Busy:
            if asyncio.get_running_loop().time() > end:
                raise
            await asyncio.sleep(0.2)


def _answer_errors(app: FastAPI) -> None:
    """Turn what is raised into answers with a code and a message, and no path of this machine."""
    responses = import_extra("fastapi.responses", "Serving the playground")
    exceptions = import_extra("fastapi.exceptions", "Serving the playground")

    def said(status: int, content: dict[str, str], retry: int | None = None) -> Response:
        headers = None if retry is None else {"Retry-After": str(retry)}
        made: Response = responses.JSONResponse(content, status_code=status, headers=headers)
        return made

    async def refused(_: Request, error: Exception) -> Response:
        status, content, retry = _refusal_of(error)
        return said(status, content, retry)

    async def malformed(_: Request, error: Any) -> Response:
        problems = error.errors()
        if any(problem["type"] == "json_invalid" for problem in problems):
            return said(400, dict(zip(("code", "message"), _CODES[400], strict=True)))
        # What was sent is not sent back: it may be long.
        said_of = "; ".join(
            f"{'.'.join(map(str, problem['loc'][1:])) or 'body'}: {problem['msg']}"
            for problem in problems[:5]
        )
        return said(422, {"code": "E_USAGE", "message": said_of[:1000]})

    async def unknown(_: Request, error: Any) -> Response:
        code, message = _CODES[error.status_code]
        return said(error.status_code, {"code": code, "message": message})

    for kind in (Refusal, Busy, TooSlow, TreelmError):
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(exceptions.RequestValidationError, malformed)
    for status in _CODES:
        app.add_exception_handler(status, unknown)


def _refusal_of(error: Exception) -> tuple[int, dict[str, str], int | None]:
    """Return the status, the content and after how many seconds to ask again."""
    if isinstance(error, Refusal):
        return error.status, {"code": error.code, "message": str(error)}, error.retry_after
    if isinstance(error, Busy):
        said = "the server has too much to do. Ask again in a moment."
        return 503, {"code": "E_BUSY", "message": said}, RETRY_AFTER
    if isinstance(error, TooSlow):
        said = "this took longer than a request may. Ask for less, or later."
        return 503, {"code": "E_TOO_SLOW", "message": said}, RETRY_AFTER
    code = getattr(error, "code", "E_FAILED")
    if isinstance(error, (UsageError, UnsupportedTask)) or code == "E_TOO_LONG":
        return 422, {"code": code, "message": str(error)}, None
    return 500, {"code": code, "message": "the model failed."}, None
