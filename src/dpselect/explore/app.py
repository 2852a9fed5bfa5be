"""The requests of the page: scores in, results out, for the questions that it offers, in their order.

Scores stay in memory, and no request is logged.
"""

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from importlib.resources import files
from io import StringIO
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpselect._validate import withheld
from dpselect._version import __version__
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.explore import results
from dpselect.explore.asked import Asked
from dpselect.explore.by_scores import MostCommon, OwnScores, TopCandidates
from dpselect.explore.over_range import OfPeople
from dpselect.explore.score_set import SHAPES, ScoreSet, made
from dpselect.explore.settings import CURRENCIES, Fields, spending_of, text, whole
from dpselect.score_files import Names, candidates_of, check_columns

QUESTIONS: dict[str, type[Asked]] = {kind.name: kind for kind in (MostCommon, TopCandidates, OfPeople, OwnScores)}


def kind_of(fields: Fields) -> type[Asked]:
    """The kind of question that a request states."""
    name = text(fields, "question", MostCommon.name)
    if name not in QUESTIONS:
        raise InvalidValue(f"question must be one of {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def asked_of(fields: Fields, scores: ScoreSet | None = None) -> Asked:
    """The question that a request states, on these scores if it is about scores."""
    return kind_of(fields).read(fields, spending_of(fields), scores)


MOST_BYTES = 2**20
_MOST_SETS = 16
_FIELDS = Names(
    "the field \N{LEFT DOUBLE QUOTATION MARK}Score column\N{RIGHT DOUBLE QUOTATION MARK}",
    "the field \N{LEFT DOUBLE QUOTATION MARK}Label column\N{RIGHT DOUBLE QUOTATION MARK}",
)
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

Answer = dict[str, Any]


class TooLarge(InvalidValue):
    """The body of a request is larger than the explorer reads."""


class NotLoaded(InvalidValue):
    """The scores that a request names are not in memory."""


class Explorer:
    """The score sets of the open pages. The oldest is dropped first."""

    def __init__(self, first: ScoreSet | None = None) -> None:
        self._sets: OrderedDict[str, ScoreSet] = OrderedDict()
        self._lock = threading.Lock()
        self._first = first

    def app(self) -> Starlette:
        """Return the web application."""
        answers = (
            self.start,
            self.shape,
            self.begin,
            self.look,
            self.curve,
            self.needed,
            self.draw,
            self.details,
        )
        routes = [
            Route("/scores", _answering(self.load, raw=True), methods=["POST"]),
            *(Route(f"/{answer.__name__}", _answering(answer), methods=["POST"]) for answer in answers),
            Route("/{name:path}", _page_file, methods=["GET"]),
        ]
        return Starlette(routes=routes)

    def start(self, _: Fields) -> Answer:
        """What the page shows first."""
        first = made("close-race", 30) if self._first is None else self._first
        return {
            "version": __version__,
            "questions": [{"name": kind.name, "title": kind.title} for kind in QUESTIONS.values()],
            "question": (MostCommon if first.has_counts else OwnScores).name,
            "currencies": [
                {"name": one.name, "title": one.title, "symbol": one.symbol, "has_delta": one.has_delta}
                for one in CURRENCIES.values()
            ],
            "shapes": [{"name": shape.name, "title": shape.title} for shape in SHAPES.values()],
            "scores": self._kept(first),
        }

    def load(self, fields: Fields) -> Answer:
        """Scores that were pasted, or that the browser read from a file."""
        column, label = text(fields, "column", "") or None, text(fields, "label", "") or None
        name = text(fields, "name", "pasted scores")[:80]
        unreadable = InvalidValue("this is not UTF-8 text: save the scores as CSV in UTF-8")
        content = withheld(lambda: fields["body"].decode("utf-8-sig"), unreadable, UnicodeDecodeError)
        check_columns(column, label, _FIELDS)
        candidates = candidates_of(StringIO(content, newline=""), column, label, _FIELDS)
        return self._kept(ScoreSet(name, candidates))

    def shape(self, fields: Fields) -> Answer:
        """Built-in scores."""
        return self._kept(made(text(fields, "shape"), whole(fields, "candidates", 2, 1024)))

    def begin(self, fields: Fields) -> Answer:
        """Where the slider begins."""
        return results.begin(self._asked(fields))

    def look(self, fields: Fields) -> Answer:
        """The results at one budget."""
        return results.look(self._asked(fields))

    def curve(self, fields: Fields) -> Answer:
        """The points of the error curve that are known so far."""
        return results.curve(self._asked(fields), *results.places_of(fields))

    def needed(self, fields: Fields) -> Answer:
        """The budget for an error."""
        return results.needed(self._asked(fields), fields)

    def draw(self, fields: Fields) -> Answer:
        """Simulated answers: how often each candidate is chosen. Never for release."""
        asked, draws = self._asked(fields), text(fields, "draws")
        offered = [str(count) for count in asked.draw_counts]
        if draws not in offered:
            raise InvalidValue(f"draws must be one of {', '.join(offered)}")
        return asked.drawn(int(draws))._asdict()

    def details(self, fields: Fields) -> Answer:
        """What need not follow a moving slider: a comparison, and the settings as code."""
        asked = self._asked(fields)
        return {"compared": results.compared(asked), "python": asked.python(), "command": asked.command()}

    def _asked(self, fields: Fields) -> Asked:
        return asked_of(fields, self._set(fields) if kind_of(fields).has_scores else None)

    def _kept(self, shown: ScoreSet) -> Answer:
        key = secrets.token_urlsafe(12)
        with self._lock:
            self._sets[key] = shown
            while len(self._sets) > _MOST_SETS:
                self._sets.popitem(last=False)
        return {
            "id": key,
            "name": shown.name,
            "unit": shown.unit,
            "monotonic": SHAPES[shown.shape].monotonic if shown.shape else None,  # a file does not state it
            "shape": shown.shape,
            "candidates": len(shown.exact),
        }

    def _set(self, fields: Fields) -> ScoreSet:
        key = text(fields, "id")
        with self._lock:
            if key not in self._sets:
                raise NotLoaded("these scores are no longer in memory: load them again")
            self._sets.move_to_end(key)
            return self._sets[key]


def _answering(answer: Callable[[Fields], Answer], *, raw: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with JSON: a result or an error. A raw body is content; the query has the fields."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await _body(request)
            fields = {**request.query_params, "body": body} if raw else _fields(body)
            return JSONResponse(await run_in_threadpool(answer, fields))
        except DPSelectError as error:
            status = 413 if isinstance(error, TooLarge) else 404 if isinstance(error, NotLoaded) else 400
            return JSONResponse({"error": str(error)}, status)
        except Exception as error:  # its message might quote a score
            return JSONResponse({"error": f"the explorer failed ({type(error).__name__}): please report it"}, 500)

    return endpoint


async def _body(request: Request) -> bytes:
    """Read the body in memory. Nothing is written to a file, as it would be for a multipart form."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            rule = f"the file is larger than {MOST_BYTES // 2**20} MB"
            raise TooLarge(f"{rule}: this page takes scores, one line for each candidate, not the rows of a table")
        parts.append(part)
    return b"".join(parts)


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InvalidType("a request must be a JSON object")
    return fields


async def _page_file(request: Request) -> Response:
    """A file of the page."""
    name = request.path_params["name"] or "index.html"
    known = {entry.name: entry for entry in files("dpselect.explore").joinpath("page").iterdir()}
    if name not in known or name.rpartition(".")[2] not in _KINDS:
        return JSONResponse({"error": "there is no such page"}, 404)
    return Response(known[name].read_bytes(), media_type=_KINDS[name.rpartition(".")[2]])
