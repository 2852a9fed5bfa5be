"""The requests of the page: scores in, results out. Scores stay in memory, and no request is logged."""

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpselect._validate import withheld
from dpselect._version import __version__
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.explore.results import curve, epsilon_needed, look, shares
from dpselect.explore.score_set import MOST_CANDIDATES, SHAPES, ScoreSet, made
from dpselect.explore.sentences import command_line, python_code, scores_csv
from dpselect.explore.settings import settings_of, text, whole
from dpselect.mechanisms import MECHANISMS
from dpselect.score_files import Names, candidates_of, check_columns

MOST_BYTES = 2**20
_MOST_SETS = 16
_FIELDS = Names(
    "the field \N{LEFT DOUBLE QUOTATION MARK}Score column\N{RIGHT DOUBLE QUOTATION MARK}",
    "the field \N{LEFT DOUBLE QUOTATION MARK}Label column\N{RIGHT DOUBLE QUOTATION MARK}",
)
_DRAWS = ("1", "100", "10000")
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

Asked = dict[str, Any]


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
        routes = [
            Route("/start", _answering(self.start), methods=["POST"]),
            Route("/scores", _answering(self.load, raw=True), methods=["POST"]),
            Route("/shape", _answering(self.shape), methods=["POST"]),
            Route("/look", _answering(self.look), methods=["POST"]),
            Route("/curve", _answering(self.curve), methods=["POST"]),
            Route("/needed", _answering(self.needed), methods=["POST"]),
            Route("/shares", _answering(self.shares), methods=["POST"]),
            Route("/draw", _answering(self.draw), methods=["POST"]),
            Route("/code", _answering(self.code), methods=["POST"]),
            Route("/{name:path}", _page_file, methods=["GET"]),
        ]
        return Starlette(routes=routes)

    def start(self, _: Asked) -> Asked:
        """What the page shows first."""
        return {
            "version": __version__,
            "mechanisms": [{"name": name, "title": kind.title} for name, kind in MECHANISMS.items()],
            "shapes": [{"name": shape.name, "title": shape.title} for shape in SHAPES.values()],
            "most_candidates": MOST_CANDIDATES,
            "most_bytes": MOST_BYTES,
            "scores": self._kept(made("close-race", 30) if self._first is None else self._first),
        }

    def load(self, asked: Asked) -> Asked:
        """Scores that were pasted, or that the browser read from a file."""
        column, label = text(asked, "column", "") or None, text(asked, "label", "") or None
        name = text(asked, "name", "pasted scores")[:80]
        unreadable = InvalidValue("this is not UTF-8 text: save the scores as CSV in UTF-8")
        content = withheld(lambda: asked["body"].decode("utf-8-sig"), unreadable, UnicodeDecodeError)
        check_columns(column, label, _FIELDS)
        candidates = candidates_of(StringIO(content, newline=""), column, label, _FIELDS)
        return self._kept(ScoreSet(name, candidates))

    def shape(self, asked: Asked) -> Asked:
        """Built-in scores."""
        return self._kept(made(text(asked, "shape"), whole(asked, "candidates", 2, 1024)))

    def look(self, asked: Asked) -> Asked:
        """The results at one epsilon."""
        return look(self._set(asked), settings_of(asked), text(asked, "unit", "points")[:40])

    def curve(self, asked: Asked) -> Asked:
        """The points of the error curve that are known so far."""
        return curve(self._set(asked), settings_of(asked))

    def needed(self, asked: Asked) -> Asked:
        """The epsilon for an error."""
        return epsilon_needed(self._set(asked), settings_of(asked), asked)

    def shares(self, asked: Asked) -> Asked:
        """The epsilon of each of many selections."""
        return shares(self._set(asked), settings_of(asked), asked)

    def draw(self, asked: Asked) -> Asked:
        """Simulated selections: how often each candidate is chosen. Never for release."""
        shown, draws = self._set(asked), text(asked, "draws")
        if draws not in _DRAWS:
            raise InvalidValue(f"draws must be one of {', '.join(_DRAWS)}")
        chosen = settings_of(asked).mechanism_for().simulate(shown.scores, int(draws))
        return {"counts": np.bincount(chosen, minlength=len(shown.exact)).tolist()}

    def code(self, asked: Asked) -> Asked:
        """The settings as code."""
        shown, settings = self._set(asked), settings_of(asked)
        return {"python": python_code(shown, settings), "command": command_line(shown, settings)}

    def _kept(self, shown: ScoreSet) -> Asked:
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
            "labels": shown.labels,
            "scores": [str(score) for score in shown.exact],
            "losses": shown.losses.tolist(),
            "csv": scores_csv(shown),
        }

    def _set(self, asked: Asked) -> ScoreSet:
        key = text(asked, "id")
        with self._lock:
            if key not in self._sets:
                raise NotLoaded("these scores are no longer in memory: load them again")
            self._sets.move_to_end(key)
            return self._sets[key]


def _answering(answer: Callable[[Asked], Asked], *, raw: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with JSON: a result or an error. A raw body is content; the query has the fields."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await _body(request)
            asked = {**request.query_params, "body": body} if raw else _fields(body)
            return JSONResponse(await run_in_threadpool(answer, asked))
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


def _fields(body: bytes) -> Asked:
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
