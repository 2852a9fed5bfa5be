"""The explorer: a page for public scores, served on loopback until Ctrl-C, for users who know its address.

The requests of the page bring scores and get results. Scores stay in memory, and no request is logged.

A name server can resolve a foreign name to 127.0.0.1 (DNS rebinding), and a foreign page can send requests here. So the
Host must be a loopback name with our port, and the Origin, if there is one, must be ours. Other users of the machine
can reach the port, but they do not know the random key in the path.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from io import StringIO
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpselect import _validate
from dpselect._version import __version__
from dpselect.errors import DPSelectError, InvalidType, InvalidValue
from dpselect.explore import curves
from dpselect.explore.answers import CURRENCIES, Asked, Fields, asked_of, form_of, needs_scores, offered, text
from dpselect.explore.scores import MOST, SHAPES, Kept, ScoreSet, made
from dpselect.score_files import Names, candidates_of, check_columns

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
        self._sets = Kept(_MOST_SETS)
        self._first = first

    def app(self) -> Starlette:
        answers = (self.start, self.shape, self.begin, self.look, self.curve, self.needed, self.draw, self.details)
        routes = [
            Route("/scores", _answering(self.load, raw=True), methods=["POST"]),
            *(Route(f"/{answer.__name__}", _answering(answer), methods=["POST"]) for answer in answers),
            Route("/{name:path}", _page_file, methods=["GET"]),
        ]
        return Starlette(routes=routes)

    def start(self, _: Fields) -> Answer:
        """What the page shows first."""
        first = made("close-race", 30) if self._first is None else self._first
        forms = [form_of(one) for one in offered().values()]
        return {
            "version": __version__,
            "questions": forms,
            "question": next(one["name"] for one in forms if first.has_counts or not one["counts"]),
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
        content = _validate.withheld(lambda: fields["body"].decode("utf-8-sig"), unreadable, UnicodeDecodeError)
        check_columns(column, label, _FIELDS)
        candidates = candidates_of(StringIO(content, newline=""), column, label, _FIELDS)
        return self._kept(ScoreSet(name, candidates))

    def shape(self, fields: Fields) -> Answer:
        return self._kept(
            made(text(fields, "shape"), _validate.count_in_text(2, MOST, candidates=text(fields, "candidates")))
        )

    def begin(self, fields: Fields) -> Answer:
        """Where the slider begins."""
        return curves.begin(self._asked(fields))

    def look(self, fields: Fields) -> Answer:
        return curves.look(self._asked(fields))

    def curve(self, fields: Fields) -> Answer:
        """The points of the error curve that are known so far."""
        return curves.curve(self._asked(fields), *curves.places_of(fields))

    def needed(self, fields: Fields) -> Answer:
        """The budget for an error."""
        return curves.needed(self._asked(fields), fields)

    def draw(self, fields: Fields) -> Answer:
        """Simulated answers: how often each candidate is chosen. Never for release."""
        asked, draws = self._asked(fields), text(fields, "draws")
        offered = [str(count) for count in asked.draw_counts]
        if draws not in offered:
            raise InvalidValue(f"draws must be one of {', '.join(offered)}")
        return asked.drawn(int(draws))

    def details(self, fields: Fields) -> Answer:
        asked = self._asked(fields)
        return {"compared": curves.compared(asked), "python": asked.python(), "command": asked.command()}

    def _asked(self, fields: Fields) -> Asked:
        return asked_of(fields, self._set(fields) if needs_scores(fields) else None)

    def _kept(self, shown: ScoreSet) -> Answer:
        key = secrets.token_urlsafe(12)
        self._sets.get(key, lambda: shown)
        return {
            "id": key,
            "name": shown.name,
            "unit": shown.unit,
            "monotonic": SHAPES[shown.shape].monotonic if shown.shape else None,  # a file does not state it
            "shape": shown.shape,
            "candidates": len(shown.exact),
        }

    def _set(self, fields: Fields) -> ScoreSet:
        def missing() -> ScoreSet:
            raise NotLoaded("these scores are no longer in memory: load them again")

        return self._sets.get(text(fields, "id"), missing)


def _answering(answer: Callable[[Fields], Answer], *, raw: bool = False) -> Callable[[Request], Awaitable[Response]]:
    # A raw body is content; the query has the fields.

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
    # The body stays in memory: nothing is written to a file, as it would be for a multipart form.
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
    name = request.path_params["name"] or "index.html"
    known = {entry.name: entry for entry in files("dpselect.explore").joinpath("page").iterdir()}
    if name not in known or name.rpartition(".")[2] not in _KINDS:
        return JSONResponse({"error": "there is no such page"}, 404)
    return Response(known[name].read_bytes(), media_type=_KINDS[name.rpartition(".")[2]])


_NAMES = ("127.0.0.1", "localhost", "[::1]")
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",  # for exporting a chart as PNG
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def new_key() -> str:
    """A key that cannot be guessed."""
    return secrets.token_urlsafe(24)


class Guard:
    """Let a request through to the app if it comes from our own page."""

    def __init__(self, app: ASGIApp, port: int, key: str, once: Iterable[str] = ()) -> None:
        self.app = app
        self.hosts = frozenset(f"{name}:{port}" for name in _NAMES)
        self.key = key
        self.once = set(once)  # keys that work once: all users can see the browser's command line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._answer(scope)(scope, receive, guarded)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.hosts:
            return PlainTextResponse("The Host of this request is not this machine.", 421)
        if not self._is_ours(headers):
            return PlainTextResponse("Another page may not talk to the explorer.", 403)
        key, _, rest = scope["path"].removeprefix("/").partition("/")
        if self._opens(key):
            return RedirectResponse(f"/{self.key}/", 303)
        if not secrets.compare_digest(key.encode(), self.key.encode()):
            return PlainTextResponse("Open the address that the command printed, with its key.", 403)
        scope["path"], scope["root_path"], scope["raw_path"] = f"/{rest}", "", f"/{rest}".encode()
        return self.app

    def _is_ours(self, headers: Headers) -> bool:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self.hosts}:
            return False
        return site in ("same-origin", "none")

    def _opens(self, key: str) -> bool:
        matches = [one for one in self.once if secrets.compare_digest(key.encode(), one.encode())]
        self.once.difference_update(matches)
        return bool(matches)


LOOPBACK = "127.0.0.1"


def serve(first: ScoreSet | None, port: int, *, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C. `announce` gets its address, and the browser gets one that works once."""
    with bound_socket(port) as listening:
        port = listening.getsockname()[1]
        key, once = new_key(), new_key()
        guard = Guard(Explorer(first).app(), port, key, [once] if browser else [])
        server = uvicorn.Server(configuration(guard))
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after a clean end
            announce(f"http://{LOOPBACK}:{port}/{key}/")
            if browser:
                address = f"http://{LOOPBACK}:{port}/{once}"
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            server.run(sockets=[listening])


def bound_socket(port: int) -> socket.socket:
    """Open a socket on loopback. Port 0 means any free port."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # on other systems, it lets two programs listen on one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()  # now, so that a browser waits if it is faster than the server
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "not a port"
        raise InvalidValue(f"port {port} cannot be used ({reason}): give another port, or none") from None
    return listening


def configuration(guard: Guard) -> uvicorn.Config:
    """Plain HTTP without logs: a log would contain the key."""
    return uvicorn.Config(
        guard,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
