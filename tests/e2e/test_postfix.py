"""Postfix between this server and the world, with the configuration in `docs/email.md`: its
own instance, on its own ports. Skipped if it isn't installed."""

import asyncio
import os
import pwd
import re
import shutil
import smtplib
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.e2e.conftest import Site
from tests.e2e.server import Account, free_port

DOCS = Path(__file__).resolve().parents[2] / "docs" / "email.md"
POSTFIX = shutil.which("postfix", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PATIENCE = 60
PROCESSES = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
local unix - n n - - local
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""

pytestmark = [
    pytest.mark.skipif(POSTFIX is None, reason="no Postfix: apt-get install postfix"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Postfix runs as root alone"),
]


def written(heading: str) -> list[str]:
    """The code blocks below this heading of the documentation."""
    text = DOCS.read_text().split(f"\n## {heading}\n")[1]
    return re.findall(r"```\w*\n(.*?)```", re.split(r"\n##+ ", text)[0], re.DOTALL)


@dataclass
class World:
    """All other mail servers, played by one: receives what Postfix sends."""

    port: int = 0
    mails: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list)
    """Sender, recipients, and email."""

    async def handle_DATA(  # noqa: N802 (the library's name)
        self, _server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        mail = message_from_bytes(content, policy=default)
        self.mails.append((envelope.mail_from or "", list(envelope.rcpt_tos), mail))
        return "250 OK"

    def next(self, log: Path) -> tuple[str, list[str], EmailMessage]:
        """Return the next email that arrives."""
        until(lambda: bool(self.mails), "a mail goes out", log)
        return self.mails.pop(0)


@pytest.fixture
def world() -> Iterator[World]:
    found, loop = World(), asyncio.new_event_loop()

    def factory() -> Any:
        return SMTP(found, hostname="world.example", loop=loop)

    server = loop.run_until_complete(loop.create_server(factory, "127.0.0.1", 0))
    found.port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        server.close()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def postfix(lines: str, tables: dict[str, str], world: World, port: int) -> Iterator[Path]:
    """Postfix with these lines in `main.cf` and these tables. Yields its log."""
    assert POSTFIX is not None
    # It drops privileges and must still reach its directories.
    with tempfile.TemporaryDirectory(prefix="postfix-") as name:
        home = Path(name)
        home.chmod(0o755)
        for part in ("etc", "queue", "data"):
            (home / part).mkdir()
        os.chown(home / "data", pwd.getpwnam("postfix").pw_uid, -1)
        for table, content in tables.items():
            (home / "etc" / table).write_text(content)
        own = (
            "compatibility_level = 3.6\nmyhostname = mx.example.com\nmydestination = example.com\n"
            "alias_maps =\nalias_database =\ninet_interfaces = 127.0.0.1\ninet_protocols = ipv4\n"
            "virtual_alias_maps = inline:{ben@example.com=ben@elsewhere.example}\n"
            "mynetworks = 127.0.0.0/8\nsmtp_host_lookup = native\nsmtpd_peername_lookup = no\n"
            f"queue_directory = {home}/queue\ndata_directory = {home}/data\n"
            f"maillog_file = {home}/log\nmaillog_file_prefixes = {home}\n"
            f"default_transport = smtp:[127.0.0.1]:{world.port}\n"
        )
        (home / "etc" / "main.cf").write_text(own + lines.replace("/etc/postfix", f"{home}/etc"))
        (home / "etc" / "master.cf").write_text(PROCESSES.format(port=port))
        command = [POSTFIX, "-c", str(home / "etc")]
        process = subprocess.Popen(
            [*command, "start-fg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        log = home / "log"
        try:
            until(lambda: listens(port), "Postfix listens", log)
            yield log
        finally:
            subprocess.run([*command, "stop"], check=False, capture_output=True, timeout=PATIENCE)
            process.wait(PATIENCE)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def until(happened: Callable[[], bool], what: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        said = log.read_text() if log.exists() else ""
        assert time.monotonic() < deadline, f"waited in vain until {what}:\n{said}"
        time.sleep(0.05)  # A separate process can only be polled.


class Talk:
    """A sender outside, and a reader of messages inside."""

    def __init__(self, site: Site, port: int, log: Path) -> None:
        self.api = api_of(site, site.ann)
        self._outside = smtplib.SMTP("127.0.0.1", port)
        self._log = log

    def close(self) -> None:
        self.api.close()
        self._outside.close()

    def bring(self, to: str, text: str, sender: str = "zoe@elsewhere.example") -> None:
        letter = EmailMessage()
        letter["From"], letter["To"], letter["Subject"] = sender, to, "Café"
        letter.set_content(text)
        self._outside.send_message(letter)

    def hears(self, text: str) -> dict[str, Any]:
        """Wait until the newest message has this content, and return it."""
        newest: dict[str, Any] = {}

        def is_there() -> bool:
            wanted: dict[str, Any] = {
                "anchor": "newest",
                "num_before": 1,
                "num_after": 0,
                "apply_markdown": "false",
            }
            for message in self.api.get("/messages", params=wanted).json()["messages"]:
                newest.update(message)
            return newest.get("content") == text

        until(is_there, f"{text!r} comes in", self._log)
        return newest


def api_of(site: Site, account: Account) -> httpx.Client:
    return httpx.Client(
        base_url=f"{site.server.url}/api/v1",
        auth=(account.email, account.api_key),
        timeout=PATIENCE,
    )


@contextmanager
def talking(site: Site, world: World, pattern: str) -> Iterator[tuple[Talk, Path]]:
    """A server and Postfix, configured as documented."""
    lmtp, port = free_port(), free_port()
    settings, shared, own, *_ = written("Incoming email")
    main, _, table = (shared if pattern.startswith("chat+") else own).partition("# transport\n")
    assert f'"{pattern}"' in settings
    (site.server.data_dir / "tertulia.toml").write_text(
        'external_url = "https://chat.example.com"\nsmtp_host = "127.0.0.1"\n'
        f'smtp_port = {port}\nsmtp_security = "none"\nmail_from = "Chat <noreply@example.com>"\n'
        f'mail_in_pattern = "{pattern}"\nmail_in_listen = "lmtp://127.0.0.1:{lmtp}"\n'
        # However busy the machine is.
        "longest_wait_ms = 0\n"
    )
    site.server.stop()
    with postfix(main, {"transport": table.replace("2424", str(lmtp))}, world, port) as log:
        site.server.start()
        talk = Talk(site, port, log)
        try:
            yield talk, log
        finally:
            talk.close()


@pytest.mark.parametrize("pattern", ["chat+%s@example.com", "%s@chat.example.com"])
def test_emails_are_received_with_the_documented_configuration(
    sqlite_site: Site, world: World, pattern: str
) -> None:
    with talking(sqlite_site, world, pattern) as (talk, log):
        found = talk.api.get("/get_stream_id", params={"stream": "general"}).json()
        channel = f"/streams/{found['stream_id']}/email_address"
        address = talk.api.get(channel).json()["email"]
        assert re.fullmatch(re.escape(pattern).replace("%s", r"[a-z0-9.-]+"), address)
        talk.bring(address, "Twelve cups.")
        assert talk.hears("Twelve cups.")["subject"] == "Café"
        # Email to an address that doesn't exist is accepted and dropped; letter case doesn't
        # matter.
        talk.bring(re.sub(r"\.[a-z2-7]{20}@", f".{'a' * 20}@", address), "No.")
        talk.bring(address.upper(), "Thirteen.")
        talk.hears("Thirteen.")
        # Errors that the sender should know about are bounced.
        talk.bring(address, "\n")
        sender, recipients, mail = world.next(log)
        assert (sender, recipients) == ("<>", ["zoe@elsewhere.example"])
        assert "This email is empty" in mail.as_string()
        # Other addresses of the domain aren't affected.
        with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
            talk.bring("stranger@example.com", "No.")
        assert refused.value.recipients["stranger@example.com"][0] == 550


def test_a_notification_email_is_sent_answered_and_unsubscribed_from(
    sqlite_site: Site, world: World
) -> None:
    town = sqlite_site
    with talking(town, world, "chat+%s@example.com") as (talk, log), api_of(town, town.ben) as ben:
        town.server.command("mail", "--test", "zoe@elsewhere.example")
        sender, recipients, mail = world.next(log)
        assert (sender, recipients) == ("noreply@example.com", ["zoe@elsewhere.example"])
        assert mail["Subject"] == "Test email from Example"

        ben.patch("/settings", data={"email_notifications_batching_period_seconds": 1})
        said = {"type": "direct", "to": f"[{town.ben.user_id}]", "content": "How many — ¿cuántas?"}
        talk.api.post("/messages", data=said)
        sender, recipients, mail = world.next(log)
        assert recipients == ["ben@elsewhere.example"]
        for kind in ("plain", "html"):
            part = mail.get_body((kind,))
            assert part is not None
            assert "How many — ¿cuántas?" in part.get_content()
        talk.bring(mail["Reply-To"], "Four.", "ben@elsewhere.example")
        answer = talk.hears("Four.")
        assert (answer["type"], answer["sender_id"]) == ("private", town.ben.user_id)
        # As email programs do: one POST with only this body.
        assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        match = re.fullmatch(
            r"<https://chat\.example\.com(/unsubscribe/\S+)>", mail["List-Unsubscribe"]
        )
        assert match is not None
        clicked = httpx.post(
            town.server.url + match[1],
            content="List-Unsubscribe=One-Click",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
        assert clicked.status_code == 200
        wanted = {"fetch_event_types": '["user_settings"]', "event_types": "[]"}
        settings = ben.post("/register", data=wanted).json()["user_settings"]
        assert not settings["enable_offline_email_notifications"]
