"""Webhook payloads of services as messages: real payloads, reduced to what is read."""

import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.integrations.incoming import (
    EventFilter,
    HandshakeReply,
    Post,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Malformed, Part, address, code, fenced, link
from tertulia.integrations.services import INTEGRATIONS

PLACE = Path(__file__).parents[1] / "integrations"
CASES: dict[str, list[dict[str, Any]]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(PLACE.glob("*.json"))
}
ROWS = [
    pytest.param(name, case, id=f"{name}-{n}")
    for name, cases in CASES.items()
    for n, case in enumerate(cases)
]


def test_every_integration_has_payloads() -> None:
    assert CASES.keys() == INTEGRATIONS.keys()
    assert len(INTEGRATIONS) >= 32


@pytest.mark.parametrize(("name", "case"), ROWS)
def test_a_payload_becomes_a_readable_message(name: str, case: dict[str, Any]) -> None:
    request = WebhookRequest(Part(case["payload"]), case.get("headers", {}))
    wanted, found = case["post"], INTEGRATIONS[name].translate(request)
    if isinstance(found, HandshakeReply):
        assert {"fields": dict(found.fields), "headers": dict(found.headers)} == wanted
        return
    assert (
        found and {"topic": found.topic, "content": found.content, "event": found.event}
    ) == wanted
    if found is not None and INTEGRATIONS[name].events and found.event:
        assert found.event in INTEGRATIONS[name].events or name == "datadog"


def _spoiled(value: Any) -> Iterator[Any]:
    """The payload with each of its parts, in turn, removed or replaced."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: one for name, one in value.items() if name != key}
            others: tuple[Any, ...] = (None, [], {}, 7, 1e308, "x", "http://[", [None], True)
            for other in others:
                yield {**value, key: other}
            for spoiled in _spoiled(part):
                yield {**value, key: spoiled}
    elif isinstance(value, list) and value:
        yield from ([spoiled] for spoiled in _spoiled(value[0]))


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_payload_breaks_an_integration(name: str) -> None:
    for case in CASES[name]:
        payloads: list[Any] = [*_spoiled(case["payload"]), None, [], {}, "x", 7, [None]]
        for payload in payloads:
            request = WebhookRequest(Part(payload), case.get("headers", {}))
            with contextlib.suppress(Malformed, Unsupported):
                found = INTEGRATIONS[name].translate(request)
                assert not isinstance(found, Post) or (found.topic and found.content)


UNKNOWN: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "github": ({}, {"x-github-event": "sponsorship"}),
    "gitlab": ({}, {"x-gitlab-event": "Member Hook"}),
    "gitea": ({}, {"x-gitea-event": "wiki"}),
    "forgejo": ({}, {"x-forgejo-event": "wiki"}),
    "gogs": ({}, {"x-gogs-event": "wiki"}),
    "bitbucket2": ({}, {"x-event-key": "repo:transfer"}),
    "bitbucket3": ({}, {"x-event-key": "mirror:repo_synchronized"}),
    "jira": ({"webhookEvent": "board_created"}, {}),
    "linear": ({"type": "Customer"}, {}),
    "trello": ({"action": {"type": "unknown", "data": {}}}, {}),
    "sentry": ({}, {"sentry-hook-resource": "seer"}),
    "pagerduty": ({"event": {"event_type": "service.created"}}, {}),
    "opsgenie": ({"action": "Other"}, {}),
    "circleci": ({"type": "pipeline-created"}, {}),
    "netlify": ({"state": "new"}, {}),
    "heroku": ({"resource": "sni-endpoint"}, {}),
    "ansibletower": ({"status": "waiting"}, {}),
    "stripe": ({"type": "radar.early_fraud_warning.created"}, {}),
    "notion": ({"type": "view.created"}, {}),
}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_unknown_events_are_not_supported(name: str) -> None:
    payload, headers = UNKNOWN[name]
    with pytest.raises(Unsupported) as raised:
        INTEGRATIONS[name].translate(WebhookRequest(Part(payload), headers))
    assert raised.value.event


SECRET, BODY, NOW = "s3cret", b'{"a": "\xc3\xa4"}', 1_800_000_000.0


def _hex(said: bytes = BODY) -> str:
    return hmac.new(SECRET.encode(), said, "sha256").hexdigest()


def _base64(said: bytes, algorithm: str) -> str:
    return base64.b64encode(hmac.new(SECRET.encode(), said, algorithm).digest()).decode()


def _jws(head: dict[str, str], claims: dict[str, str]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in (head, claims)
    ]
    said = b".".join(parts)
    signed = hmac.new(SECRET.encode(), said, "sha256").digest()
    return (said + b"." + base64.urlsafe_b64encode(signed).rstrip(b"=")).decode()


HASHED = {"iss": "netlify", "sha256": hashlib.sha256(BODY).hexdigest()}
SIGNED = [
    ("github", "x-hub-signature-256", f"sha256={_hex()}"),
    ("gitlab", "x-gitlab-token", SECRET),
    ("gitea", "x-gitea-signature", _hex()),
    ("forgejo", "x-hub-signature-256", f"sha256={_hex()}"),
    ("gogs", "x-gogs-signature", _hex()),
    ("bitbucket2", "x-hub-signature", f"sha256={_hex()}"),
    ("bitbucket3", "x-hub-signature", f"sha256={_hex()}"),
    ("jira", "x-hub-signature", f"sha256={_hex()}"),
    ("linear", "linear-signature", _hex()),
    ("trello", "x-trello-webhook", _base64(BODY + b"http://chat.test/here", "sha1")),
    ("sentry", "sentry-hook-signature", _hex()),
    ("grafana", "x-grafana-alerting-signature", _hex()),
    ("pagerduty", "x-pagerduty-signature", f"v1=00,v1={_hex()}"),
    ("circleci", "circleci-signature", f"v1={_hex()}"),
    ("netlify", "x-webhook-signature", _jws({"alg": "HS256"}, HASHED)),
    ("heroku", "heroku-webhook-hmac-sha256", _base64(BODY, "sha256")),
    ("stripe", "stripe-signature", f"t=1800000000,v1={_hex(b'1800000000.' + BODY)}"),
    ("asana", "x-hook-signature", _hex()),
    ("notion", "x-notion-signature", f"sha256={_hex()}"),
]


def test_every_service_that_signs_is_in_the_table() -> None:
    assert {row[0] for row in SIGNED} == {n for n, one in INTEGRATIONS.items() if one.signature}


@pytest.mark.parametrize(("name", "header", "value"), SIGNED)
def test_a_signature_is_checked(name: str, header: str, value: str) -> None:
    check = INTEGRATIONS[name].signature
    assert check is not None

    def holds(body: bytes, headers: dict[str, str], now: float = NOW, secret: str = SECRET) -> bool:
        request = WebhookRequest(Part({}), headers, body, "http://chat.test/here")
        return check(secret, request, now)

    assert holds(BODY, {header: value})
    assert not holds(BODY, {header: value}, secret="other")
    assert not holds(BODY, {})
    assert not holds(BODY, {header: value[:-2]})
    if header != "x-gitlab-token":
        assert not holds(BODY + b" ", {header: value})
    if name == "stripe":
        assert not holds(BODY, {header: value}, now=NOW + 301)


def test_an_unsigned_token_is_refused() -> None:
    check = INTEGRATIONS["netlify"].signature
    assert check is not None
    for token in (_jws({"alg": "none"}, HASHED), _jws({"alg": "HS256"}, {"sha256": "0"}), "a.b.c"):
        assert not check(
            SECRET, WebhookRequest(Part({}), {"x-webhook-signature": token}, BODY), NOW
        )


@pytest.mark.parametrize(
    ("only", "exclude", "event", "wanted"),
    [
        (None, (), "push", True),
        (["push"], (), "push", True),
        (["issue*"], (), "issue_comment", True),
        (["issue*"], (), "push", False),
        (None, ["push"], "push", False),
        (["*"], ["pu*"], "push", False),
        ([], (), "push", False),
        (["push"], (), "", True),
    ],
)
def test_events_are_filtered(
    only: list[str] | None, exclude: list[str], event: str, wanted: bool
) -> None:
    assert EventFilter(only, exclude).wants(event) is wanted


def test_text_from_services_is_harmless() -> None:
    part = Part({"a": "@**all** @_**Ann|3** @*staff* a@b\x00", "u": "javascript:alert(1)"})
    assert part.line("a") == "@\u200b**all** @\u200b_**Ann|3** @\u200b*staff* a@b"
    assert part.url("u") == ""
    # Removing characters or adding text doesn't make a mention, either.
    part = Part({"a": "@\x01**all** @_\x7f*staff* team@", "b": "me@x.org, @ann"})
    assert part.line("a") == "@\u200b**all** @\u200b_*staff* team@\u200b"
    assert part.line("b") == "me@x.org, @ann"
    for text in ("<@U1|**all**>", "<!**all**>", "<!x^**all**>", "&#64;**all**", "&commat;**all**"):
        post = INTEGRATIONS["slack_incoming"].translate(WebhookRequest(Part({"text": text}), {}))
        assert isinstance(post, Post)
        assert "@**" not in post.content
    post = INTEGRATIONS["slack_incoming"].translate(
        WebhookRequest(Part({"text": "<!here> a &amp;lt; b &lt;"}), {})
    )
    assert isinstance(post, Post)
    assert post.content == "@**all** a &lt; b <"
    assert address("https://e.test/a b)(x") == "https://e.test/a%20b%29%28x"
    assert link("a [b] c", "https://e.test") == "[a [b] c](https://e.test)"
    assert link("a] c", "https://e.test") == "[a) c](https://e.test)"
    assert fenced("~~~~\nx", "quote") == "~~~~~ quote\n~~~~\nx\n~~~~~"
    assert code("a`b") == "`` a`b ``"
