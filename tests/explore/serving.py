"""The explorer on a real port, in a thread of its own."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn

from dpselect.explore.app import Explorer, Guard, bound_socket, configuration

KEY = "test-key"


class Served:
    """Where the explorer listens, and a client that speaks to it as the page does."""

    def __init__(self, port):
        self.port = port
        self.address = f"http://127.0.0.1:{port}/{KEY}/"

    def request(self, method, path, body=None, headers=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def ask(self, what, **fields):
        response, body = self.request("POST", f"/{KEY}/{what}", json.dumps(fields).encode())
        return response.status, json.loads(body)

    def load(self, content, **fields):
        response, body = self.request("POST", f"/{KEY}/scores?{urlencode(fields)}", content)
        return response.status, json.loads(body)


@contextmanager
def served(first=None, once=()):
    with bound_socket(0) as listening:
        port = listening.getsockname()[1]
        server = uvicorn.Server(configuration(Guard(Explorer(first).app(), port, KEY, once)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Served(port)
        finally:
            server.should_exit = True
            thread.join()
