"""Test emails that an owner sends."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword

from tertulia.outbound import transports
from tertulia.outbound.transports import Smtp
from tertulia.service.config import Config
from tertulia.wire.api import server as mail_trials
from tests.support import Organization, new_organization
from tests.unit.test_mail_sender import LETTER, Server, listening


def with_mail(config: Config, port: int, **more: Any) -> Config:
    return msgspec.structs.replace(
        config, smtp_host="127.0.0.1", smtp_port=port, smtp_security="none", **more
    )


async def tried(org: Organization) -> tuple[str, str]:
    found = (await org["ann"].post("/mails/test")).ok
    assert found["to"] == "ann@example.com"
    return found["outcome"], found["reply"]


async def test_only_owners_send_test_emails_and_without_email_they_are_told(
    org: Organization,
) -> None:
    assert await tried(org) == ("not_set_up", "")
    assert not (Path(org.node.config.data_path) / "mail").exists()
    (await org["ben"].post("/mails/test")).refused("UNAUTHORIZED_PRINCIPAL")
    (await org.nobody.post("/mails/test")).refused("UNAUTHORIZED", 401)


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
async def test_a_test_email_reports_its_result_without_settings(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mail_trials, "TEST_MAIL_SECONDS", 86400.0)
    bad = "535 5.7.8 no postie here whose password is secret-word"

    def check(_s: Any, _session: Any, _e: Any, _mechanism: Any, login: LoginPassword) -> AuthResult:
        known = login.password == b"secret-word" and not server.refuses.startswith("535")
        return AuthResult(success=known, handled=False, message=None if known else bad)

    options = {"authenticator": check, "auth_require_tls": False}
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(listening(Server(), **options))
        own = with_mail(config, server.port, smtp_user="postie", smtp_password="secret-word")
        async with new_organization(own) as org:
            assert await tried(org) == ("sent", "")
            assert (await server.got.get()).rcpt_tos == ["ann@example.com"]
            server.refuses = "550 5.7.1 No relay from 10.1.2.3:25 by mx.corp.test for <ann@a.test>"
            assert await tried(org) == ("refused", "550 5.7.1 No relay from … by … for <…>")
            (logged,) = [one for one in caplog.records if one.name == "tertulia.mail"][-1:]
            assert "550 recipient rejected" in logged.__dict__["fields"]["reason"]
            server.refuses = bad
            said = "535 5.7.8 no … here whose password is …"
            assert await tried(org) == ("not_signed_in", said)
            server.refuses, server.answers = "", ["451 4.3.0 not now, fe80::1 is full"]
            assert await tried(org) == ("refused", "451 4.3.0 not now, … is full")
            await stack.aclose()
            assert await tried(org) == ("unreachable", "")
            (await org["ann"].post("/mails/test")).refused("RATE_LIMIT_HIT", 429)
    assert mail_trials.TEST_MAILS == 5


async def test_an_unresponsive_mail_server_is_not_waited_for(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = asyncio.Event()

    async def never(*_: Any) -> str:
        await silent.wait()
        return "221 Bye"

    async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await silent.wait()

    monkeypatch.setattr(Server, "handle_QUIT", never, raising=False)
    monkeypatch.setattr(transports, "_FAREWELL_SECONDS", 0.01)
    async with listening(Server()) as server:
        # The mail server has accepted it, and would send it twice if that were forgotten.
        await Smtp(server.settings()).send(LETTER, "abc")
        assert server.got.qsize() == 1
        silent.set()
    silent.clear()
    listener = await asyncio.start_server(mute, "127.0.0.1", 0)
    async with new_organization(with_mail(config, listener.sockets[0].getsockname()[1])) as org:
        monkeypatch.setattr(transports, "TIMEOUT_SECONDS", 0.1)
        assert await tried(org) == ("unreachable", "")
    silent.set()
    listener.close()
