"""Access log lines with accounts and addresses, for operators who want them."""

import logging
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from tertulia.service.config import Config
from tertulia.wire.http.node import RequestLog


async def nothing() -> Message:
    return {"type": "http.request"}


@pytest.mark.parametrize(
    ("client", "agent", "said"),
    [
        (
            ("192.0.2.7", 1),
            b"curl/8.14.1",
            {"from": "192.0.2.7", "agent": "curl/8.14.1"},
        ),
        (None, None, {"from": "-", "agent": "-"}),
        (("2001:db8::1", 1), b"x" * 9999, {"from": "2001:db8::1", "agent": "x" * 200}),
    ],
)
@pytest.mark.parametrize("is_wanted", [True, False])
async def test_lines_show_account_and_address_if_configured(
    caplog: pytest.LogCaptureFixture,
    client: tuple[str, int] | None,
    agent: bytes | None,
    said: dict[str, str],
    is_wanted: bool,
) -> None:
    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(_: Message) -> None:
        """Discard it."""

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/user_uploads/temporary/proof/name.png",
        "query_string": b"token=secret",
        "headers": [] if agent is None else [(b"user-agent", agent)],
        "client": client,
    }
    with caplog.at_level(logging.INFO):
        await RequestLog(answering, Config(access_log=is_wanted))(scope, nothing, send)
    (fields,) = [one.fields for one in caplog.records if one.message == "request"]  # type: ignore[attr-defined]  # ours
    assert fields["path"] == "/user_uploads/temporary/…"
    assert {name: fields[name] for name in said if name in fields} == (said if is_wanted else {})
    assert "secret" not in str(fields)
