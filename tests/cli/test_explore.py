"""`dpselect explore` as a user starts and stops it."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

COMMAND = [sys.executable, "-m", "dpselect", "explore"]


def status(address):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def started(*words, **options):
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    [address] = re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", process.stdout.readline())
    assert process.stdout.readline().endswith("Press Ctrl-C to stop.\n")
    return process, address


def test_it_serves_until_ctrl_c(tmp_path):
    (tmp_path / "scores.csv").write_text("a,1\nb,2\n")
    process, address = started("scores.csv", "--no-browser", cwd=tmp_path)
    assert status(address) == 200
    process.send_signal(signal.SIGINT)
    output, complaints = process.communicate(timeout=30)
    assert process.returncode == 0
    assert (output, complaints) == ("", "")
    assert list(tmp_path.iterdir()) == [tmp_path / "scores.csv"]


def test_the_browser_gets_an_address_that_opens_once(tmp_path):
    """The words of a command are seen by all users of the machine, so the key itself must not be among them."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$1" > "{tmp_path}/seen.tmp" && mv "{tmp_path}/seen.tmp" "{tmp_path}/seen"\n'
    )
    browser.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process, address = started("--port", str(port), env={**os.environ, "BROWSER": f"{browser} %s"})
    try:
        assert urlsplit(address).port == port
        assert status(address) == 200
        while not (tmp_path / "seen").exists():
            assert process.poll() is None
        opened = (tmp_path / "seen").read_text().strip()
        assert urlsplit(opened).port == port
        assert urlsplit(address).path.strip("/") not in opened
        assert [status(opened), status(opened)] == [303, 403]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_a_port_that_is_taken(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("explore", "--no-browser", "--port", taken.getsockname()[1])
    assert done.code == 2
    assert re.search(r"error: port \d+ cannot be used .*: give another port, or none", done.err)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_the_extra_is_named_where_it_is_missing(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['dpselect', 'explore']; "
    program += "from dpselect.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert f"{sys.executable} -m pip install starlette uvicorn\n" in done.stderr
