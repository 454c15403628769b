"""`tertulia mail` and `tertulia invite`."""

import asyncio
import json
import re
from pathlib import Path

import httpx
import pytest

from tertulia.app.config import ConfigError, load
from tertulia.service.mailing import FOLDER
from tests.cli.support import Place, run
from tests.emails import due_emails, no_email_job
from tests.support import open_organization


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
    place.answer("invite", "--email", "yan@example.com", "--send")
    (waiting,) = place.answer("mail")["waiting"]
    assert (waiting["kind"], waiting["to"]) == ("invitation", "yan@example.com")
    listed = run("invitations", "list", "--json", *place.flags)
    links = [one["invite_link"] for one in json.loads(listed.stdout)["invitations"]]
    assert links == [shared, None]
    assert place.run("invite", "--send").exit_code == 2


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
