"""Emails to imported people, and signing in with them."""

import asyncio
import re
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tertulia.app.founding import opened_log, opened_vault
from tertulia.imports.invitation_emails import FACT, REMINDED_SECONDS, invite
from tertulia.imports.records import SourceInvitation, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.model.errors import Refused
from tertulia.outbound.mail_templates import MailTemplates
from tertulia.service.config import Config
from tertulia.service.links import Links
from tertulia.store import installation, outbox
from tests.e2e.server import Server, ended
from tests.imports.invented import Invented, imported

pytestmark = pytest.mark.anyio
SITE = "https://chat.example.com"


async def letters(config: Config) -> dict[str, str]:
    """Return the queued emails' texts by address."""
    vault = opened_vault(config)
    found = {}
    async with opened_log(config, print) as log:
        for queued in await log.store.read(outbox.queued):
            letter = MailTemplates(lambda: log.state, Links(vault)).render(queued.mail, log.clock())
            if letter is not None:
                found[letter.to] = letter.text
    vault.close()
    return found


async def state_of(config: Config) -> Any:
    async with opened_log(config, print) as log:
        return log.state


def sign_in(config: Config, path: str) -> None:
    """Set a password at this path of a running server, and sign in with a client."""
    server = Server(config.data_path, config.database_url)
    password = "a good new password 17"
    with ended(server):
        server.start()
        with httpx.Client(base_url=server.url, follow_redirects=True) as browser:
            assert "ben@example.com" in browser.get(path).text
            assert browser.post(path, data={"password": password}).status_code == 200
        given = {"username": "ben@example.com", "password": password}
        answer = httpx.post(f"{server.url}/api/v1/fetch_api_key", data=given).json()
        assert answer["result"] == "success"
        key = (answer["email"], answer["api_key"])
        assert httpx.post(f"{server.url}/api/v1/register", auth=key).status_code == 200


async def test_people_come_in_by_the_link(config: Config) -> None:
    await imported(config, Invented(4))
    joined_at = (await state_of(config)).users[12].joined_at
    async with opened_log(config, print) as log:
        assert await invite(log, SITE, 100) == 2
    found = await letters(config)
    # Cleo is deactivated, and her address is unknown.
    assert found.keys() == {"ann@example.com", "ben@example.com"}
    link = re.search(rf"{SITE}(/reset/\S+)", found["ben@example.com"])
    assert link is not None
    await asyncio.to_thread(sign_in, config, link[1])
    ben = (await state_of(config)).users[12]
    assert not ben.awaits_arrival
    assert ben.joined_at == joined_at  # They joined on the previous server.
    async with opened_log(config, print) as log:
        with pytest.raises(Refused, match="in the last 24 hours"):
            await invite(log, SITE, 100)
        yesterday = f"[{int(log.clock()) - REMINDED_SECONDS}, 99]"
        await log.store.write(lambda c: installation.put(c, FACT, yesterday))
        assert await invite(log, SITE, 100) == 1  # Only Ann hasn't signed in.


class Inviting(Invented):
    """The invented organization, with open invitations."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        addresses = [f"guest{n}@example.com" for n in range(5)]
        made = tuple(SourceInvitation(inviter=11, address=one) for one in addresses)
        return replace(super().organization(report), invitations=made)


async def test_imported_invitations_count_for_the_daily_limit(config: Config) -> None:
    await imported(config, Inviting(4))
    async with opened_log(config, print) as log:
        assert await invite(log, SITE, 3) == 2 + 3
        with pytest.raises(Refused, match="in the last 24 hours"):
            await invite(log, SITE, 3)
        assert await invite(log, SITE, 4) == 1
