"""`tertulia mail` and `tertulia invite`."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tertulia.app.config import ConfigError, load
from tertulia.outbound.mail_sender import MailSender
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tertulia.outbound.transports import Delayed, Undeliverable
from tertulia.service.mailing import FOLDER
from tertulia.store.outbox import KEPT_SECONDS
from tests.cli.support import Place, run
from tests.emails import due_emails, no_email_job
from tests.support import TestClock, open_organization


def email_files(place: Place) -> list[Path]:
    return sorted((place.data_dir / FOLDER).glob("*.eml"))


def test_link_from_the_command_line_can_be_used(place: Place) -> None:
    place.create_organization()
    link = place.run("invite", "--role", "moderator", "--days", "0").stdout.strip()
    one = place.answer("invite", "--email", "zoe@example.com")["invite_link"]
    assert email_files(place) == []

    async def come_in() -> None:
        async with open_organization(place.config) as org:
            many, single = org.node.state.invitations
            assert (many.expires_at, many.address, int(many.role)) == (None, None, 300)
            assert (single.address, int(single.role)) == ("zoe@example.com", 400)
            for path, email in ((link, "yan@example.com"), (one, "zoe@example.com")):
                fields = {"email": email, "full_name": "Somebody", "password": "good words"}
                page = await org.http.post(re.sub("https?://[^/]+", "", path), data=fields)
                assert (page.status_code, page.headers["location"]) == (303, "/")
                assert org.node.state.user_with_address(email) is not None

    asyncio.run(come_in())


def test_existing_user_cannot_be_invited(place: Place) -> None:
    place.create_organization()
    result = place.run("invite", "--email", "ann@example.com")
    assert result.exit_code == 1
    assert "already" in result.stderr


def test_invitations_are_listed_with_their_link_unless_the_server_emails_it(place: Place) -> None:
    place.create_organization()
    refused = place.run("invite", "--email", "zoe@example.com", "--send")
    assert (refused.exit_code, "smtp_host" in refused.stderr) == (2, True)
    (place.data_dir / "tertulia.toml").write_text(
        'external_url = "https://chat.example.com"\nsmtp_host = "127.0.0.1"\nsmtp_port = 9\n'
    )
    shared = place.answer("invite", "--email", "zoe@example.com")["invite_link"]
    assert place.answer("mail")["waiting"] == []
    sent = place.run("invite", "--email", "yan@example.com", "--send")
    assert sent.stdout.count("\n") == 1
    assert "emails it to yan@example.com when it runs" in sent.stderr
    (waiting,) = place.answer("mail")["waiting"]
    assert (waiting["kind"], waiting["to"]) == ("invitation", "yan@example.com")
    listed = run("invitations", "list", "--json", *place.flags)
    links = [one["invite_link"] for one in json.loads(listed.stdout)["invitations"]]
    assert links == [shared, None]
    assert place.run("invite", "--send").exit_code == 2


def listed_invitations(place: Place) -> dict[str, dict[str, Any]]:
    """Return the invitations in the list, by address."""
    listed = json.loads(run("invitations", "list", "--json", *place.flags).stdout)["invitations"]
    return {one["email"]: one for one in listed}


class Refusing:
    """A mail server that accepts one address, has no user of another, and is busy for the rest."""

    async def send(self, letter: RenderedMail, _mail_id: str) -> None:
        if letter.to.startswith("wrong"):
            raise Undeliverable("127.0.0.1: 550 No such user here")
        if not letter.to.startswith("right"):
            raise Delayed("127.0.0.1: 450 Try again later")


@pytest.mark.usefixtures(no_email_job.__name__)
def test_list_says_which_invitations_were_emailed(place: Place) -> None:
    place.create_organization()
    (place.data_dir / "tertulia.toml").write_text(
        'external_url = "https://chat.example.com"\nsmtp_host = "127.0.0.1"\n'
    )
    clock = TestClock()

    async def deliver() -> None:
        async with open_organization(place.config, clock=clock) as org:
            node = org.node
            letters = MailTemplates(lambda: node.state, node.links)
            await MailSender(node.store, letters, Refusing(), node.clock).deliver()

    for name in ("right", "wrong", "busy"):
        place.run("invite", "--email", f"{name}@example.com", "--send")
    link = place.answer("invite", "--email", "shared@example.com")["invite_link"]
    assert {one["email_status"] for one in listed_invitations(place).values()} == {
        "waiting",
        "none",
    }
    asyncio.run(deliver())
    found = listed_invitations(place)
    assert {address.partition("@")[0]: one["email_status"] for address, one in found.items()} == {
        "right": "sent",
        "wrong": "failed",
        "busy": "waiting",
        "shared": "none",
    }
    assert found["wrong@example.com"]["email_problem"] == "127.0.0.1: 550 No such user here"
    assert found["busy@example.com"]["email_problem"] == "127.0.0.1: 450 Try again later"
    assert found["right@example.com"]["invite_link"] is None
    assert found["shared@example.com"]["invite_link"] == link
    for address in ("wrong@example.com", "busy@example.com"):
        assert "/join/" in found[address]["invite_link"]
    text = run("invitations", "list", *place.flags).stdout
    assert "couldn't be emailed, so share its link: 127.0.0.1: 550 No such user here" in text
    assert "given up: 127.0.0.1: 550 No such user here" in place.run("mail").stdout
    # It's never sent again by itself, and forgotten when it's revoked.
    clock.ahead += 2 * KEPT_SECONDS
    asyncio.run(deliver())
    assert listed_invitations(place)["wrong@example.com"]["email_status"] == "failed"
    run("invitations", "revoke", str(found["wrong@example.com"]["id"]), *place.flags)
    clock.ahead += 2 * KEPT_SECONDS
    asyncio.run(deliver())
    waiting = [one["to"] for one in place.answer("mail")["waiting"]]
    assert waiting == ["busy@example.com"]


def test_links_lead_to_the_servers_address(place: Place) -> None:
    place.create_organization()
    assert place.run("invite").stdout.startswith("http://127.0.0.1:9991/join/")
    (place.data_dir / "tertulia.toml").write_text('external_url = "https://chat.example.com"\n')
    assert place.run("invite").stdout.startswith("https://chat.example.com/join/")


def test_running_server_accepts_a_new_link(place: Place) -> None:
    place.create_organization()
    with place.serving() as (_, address):
        link = place.run("invite").stdout.strip()
        path = re.sub("https?://[^/]+", "", link)
        # It notices within seconds what another process wrote.
        assert 200 in (httpx.get(address + path).status_code for _ in range(1000))


def test_test_email_is_written_to_a_file_without_a_server(place: Place) -> None:
    place.create_organization()
    result = place.run("mail", "--test", "you@example.com")
    assert result.exit_code == 0
    assert "Wrote a test email to you@example.com" in result.stdout
    (letter,) = email_files(place)
    assert "Your server can send email." in letter.read_text()


def test_failed_test_email_says_why(place: Place) -> None:
    place.create_organization()
    (place.data_dir / "tertulia.toml").write_text(
        'external_url = "https://chat.example.com"\nsmtp_host = "127.0.0.1"\nsmtp_port = 1\n'
    )
    result = place.run("mail", "--test", "you@example.com")
    assert result.exit_code == 1
    assert "couldn't be sent. 127.0.0.1:" in result.stderr
    assert place.run("mail", "--test", "nobody").exit_code == 1


@pytest.mark.usefixtures(no_email_job.__name__)
def test_pending_emails_are_listed(place: Place) -> None:
    place.create_organization()
    assert "No pending emails." in place.run("mail").stdout

    async def invite() -> None:
        async with open_organization(place.config) as org:
            sent = {"invitee_emails": "zoe@example.com", "stream_ids": []}
            (await org["ann"].post("/invites", **sent)).ok

    async def deliver() -> None:
        async with open_organization(place.config) as org:
            assert len(await due_emails(org)) == 1

    asyncio.run(invite())
    (waiting,) = place.answer("mail")["waiting"]
    assert (waiting["kind"], waiting["to"], waiting["attempts"]) == (
        "invitation",
        "zoe@example.com",
        0,
    )
    listed = place.run("mail").stdout
    assert "zoe@example.com" in listed
    assert "/join/" not in listed
    asyncio.run(deliver())
    assert place.answer("mail")["waiting"] == []


def test_mail_server_requires_an_external_url() -> None:
    with pytest.raises(ConfigError, match="external_url"):
        load({}, environment={"TERTULIA_SMTP_HOST": "mail.example.com"})


def test_mail_server_password_is_not_shown(place: Place) -> None:
    place.create_organization()
    (place.data_dir / "tertulia.toml").write_text('smtp_password = "hush-hush"\n')
    shown = place.run("config", "--show").stdout
    assert "smtp_password" in shown
    assert "hush-hush" not in shown
