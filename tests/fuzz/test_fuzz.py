"""Requests generated from our OpenAPI document. Whatever a client sends, the response matches the
document and is never an internal error.

The tests send a few fixed requests to each endpoint. `make fuzz` sends thousands of random ones.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests import contract
from tests.e2e.server import Server, ended

SPARED = {
    ("POST", "/realm/deactivate"): "ends the organization",
    ("POST", "/users/me/api_key/regenerate"): "ends the key that the rest is asked with",
    ("DELETE", "/users/me"): "may end the account",
    ("GET", "/events"): "waits, as it should",
}
"""Endpoints that would make the rest of the run useless, and the reasons."""


OPERATIONS = [
    (method.upper(), path)
    for path, methods in contract.described()["paths"].items()
    for method in methods
    if (method.upper(), path) not in SPARED
]


@dataclass
class Site:
    """A server with some people, channels, and messages, and its owner."""

    server: Server
    client: httpx.Client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = Server(tmp_path_factory.mktemp("fuzz") / "data")
    ann = server.create_organization()
    for name, role in [("ben", "admin"), ("cleo", "member"), ("gus", "guest")]:
        server.add(name, role)
    with ended(server):
        server.start()
        with httpx.Client(base_url=server.url, auth=(ann.email, ann.api_key)) as client:
            for name in ("general", "plans", "kitchen"):
                listed = json.dumps([{"name": name}])
                client.post("/api/v1/users/me/subscriptions", data={"subscriptions": listed})
                for topic in ("one", "two"):
                    said = {"type": "stream", "to": name, "topic": topic, "content": "hello"}
                    client.post("/api/v1/messages", data=said)
            yield Site(server, client)
        assert "Traceback" not in server.log_text(), server.log_text()[-5000:]


QUICK = 8
"""`make test` tests every eighth endpoint."""


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param(*one, marks=pytest.mark.slow if number % QUICK else ())
        for number, one in enumerate(OPERATIONS)
    ],
)
def test_every_generated_request_is_answered_as_documented(
    method: str, path: str, site: Site
) -> None:
    # Imported here, because only the process that runs these tests needs Schemathesis.
    from tests.fuzz.generated_requests import sending

    sending(method, path)(client=site.client)
