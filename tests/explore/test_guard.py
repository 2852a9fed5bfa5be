"""Only this machine, only our page, only who knows the key."""

import socket

import pytest

from dpselect.explore.app import HEADERS, new_key
from tests.explore.serving import KEY, served


@pytest.fixture(scope="module")
def guarded():
    with served(once=["opens-once"]) as running:
        yield running


def status(running, path=f"/{KEY}/", headers=None, host=None, method="GET"):
    return running.request(method, path, b"{}" if method == "POST" else None, headers, host)[0].status


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_loopback_names_are_let_in(guarded, name):
    assert status(guarded, host=f"{name}:{guarded.port}") == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "localhost.:{port}", "x"],
)
def test_a_foreign_host_is_refused(guarded, host):
    """DNS rebinding: the browser believes that evil.example is at 127.0.0.1, and says so in the Host."""
    assert status(guarded, host=host.format(port=guarded.port)) == 421
    assert status(guarded, "/look", host=host.format(port=guarded.port), method="POST") == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "file://"],
)
def test_a_foreign_origin_is_refused(guarded, origin):
    headers = {"Origin": origin.format(port=guarded.port)}
    assert status(guarded, f"/{KEY}/start", headers, method="POST") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_from_another_site_is_refused(guarded, site):
    assert status(guarded, headers={"Sec-Fetch-Site": site}) == 403


def test_our_own_page_is_let_in(guarded):
    headers = {"Origin": f"http://localhost:{guarded.port}", "Sec-Fetch-Site": "same-origin"}
    assert status(guarded, f"/{KEY}/start", headers, method="POST") == 200


@pytest.mark.parametrize("path", ["/", "/look", "/index.html", "/wrong/look", f"/{KEY}x/start", f"//{KEY}/", "/%00/"])
def test_who_does_not_know_the_key_is_refused(guarded, path):
    """Other users of the machine can reach the port as well."""
    assert status(guarded, path) == 403


def test_the_browsers_key_opens_once(guarded):
    response, _ = guarded.request("GET", "/opens-once")
    assert (response.status, response.getheader("location")) == (303, f"/{KEY}/")
    assert status(guarded, "/opens-once") == 403


def test_keys_are_long_and_new():
    assert len({new_key() for _ in range(100)}) == 100
    assert min(len(new_key()) for _ in range(100)) >= 32


@pytest.mark.parametrize("path", [f"/{KEY}/", f"/{KEY}/main.js", f"/{KEY}/nothing", "/", "/wrong/"])
def test_every_answer_carries_the_headers(guarded, path):
    response, _ = guarded.request("GET", path)
    assert {name: response.getheader(name) for name in HEADERS} == HEADERS
    assert response.getheader("server") is None
    assert response.getheader("access-control-allow-origin") is None


def test_the_policy_names_no_foreign_source():
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert not any(word in policy for word in ("http", "*", "unsafe"))


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e/guard.py", "page/index.html", ".", "style"])
def test_only_the_pages_files_are_served(guarded, name):
    assert status(guarded, f"/{KEY}/{name}") == 404


def test_only_loopback_listens(guarded):
    """A server on all addresses would answer on this one too."""
    with socket.socket() as client:
        client.settimeout(5)
        with pytest.raises(OSError):  # noqa: PT011 - refused, unreachable or not there, by the system
            client.connect(("127.0.0.2", guarded.port))
