"""The server of the explorer: on loopback only, until Ctrl-C."""

import contextlib
import os
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from dpselect.errors import InvalidValue
from dpselect.explore.app import Explorer
from dpselect.explore.guard import Guard, new_key
from dpselect.explore.score_set import ScoreSet

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
