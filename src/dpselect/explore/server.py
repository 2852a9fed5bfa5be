"""The server of the explorer: on loopback only, until Ctrl-C, and for users who know its address.

A name server can resolve a foreign name to 127.0.0.1 (DNS rebinding), and a foreign page can send requests here. So the
Host must be a loopback name with our port, and the Origin, if there is one, must be ours. Other users of the machine
can reach the port, but they do not know the random key in the path.
"""

import contextlib
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpselect.errors import InvalidValue
from dpselect.explore.app import Explorer
from dpselect.explore.score_set import ScoreSet

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
