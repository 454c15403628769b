"""A mailbox whose emails fetchmail forwards, with the configuration in `docs/email.md`. Skipped
if the programs aren't installed."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Site
from tests.e2e.server import free_port
from tests.e2e.test_postfix import PATIENCE, listens, until, written

DOVECOT = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = [
    pytest.mark.skipif(shutil.which("fetchmail") is None, reason="no fetchmail"),
    pytest.mark.skipif(DOVECOT is None, reason="no IMAP server: apt-get install dovecot-imapd"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Dovecot runs as root"),
]


@contextmanager
def mailbox(port: int) -> Iterator[Path]:
    """An IMAP server with one mailbox, and the directory where its new emails are stored."""
    assert DOVECOT is not None
    with tempfile.TemporaryDirectory(prefix="dovecot-") as name:
        home = Path(name)
        home.chmod(0o755)
        for part in ("cur", "new", "tmp"):
            (home / "mail" / part).mkdir(parents=True)
        (home / "dovecot.conf").write_text(
            f"protocols = imap\nlisten = 127.0.0.1\nbase_dir = {home}/run\n"
            f"state_dir = {home}/state\n"
            f"log_path = {home}/log\nssl = no\ndisable_plaintext_auth = no\nfirst_valid_uid = 1\n"
            f"mail_location = maildir:{home}/mail\n"
            "passdb {\n  driver = static\n  args = password=secret\n}\n"
            f"userdb {{\n  driver = static\n  args = uid=mail gid=mail home={home}/mail\n}}\n"
            f"service imap-login {{\n  inet_listener imap {{\n    port = {port}\n  }}\n"
            "  inet_listener imaps {\n    port = 0\n  }\n}\n"
        )
        subprocess.run(["chown", "-R", "mail:mail", str(home / "mail")], check=True)
        process = subprocess.Popen([DOVECOT, "-F", "-c", str(home / "dovecot.conf")])
        try:
            until(lambda: listens(port), "Dovecot listens", home / "log")
            yield home / "mail" / "new"
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_fetchmail_forwards_the_emails_of_a_mailbox(sqlite_site: Site, tmp_path: Path) -> None:
    town = sqlite_site
    lmtp, imap = free_port(), free_port()
    (lines,) = [one for one in written("Incoming email") if "proto imap" in one]
    (town.server.data_dir / "tertulia.toml").write_text(
        'mail_in_pattern = "chat+%s@example.com"\n'
        f'mail_in_listen = "lmtp://127.0.0.1:{lmtp}"\n'
        # However busy the machine is.
        "longest_wait_ms = 0\n"
    )
    town.server.stop()
    town.server.start()
    here = {
        "imap.example.com": f"127.0.0.1 service {imap}",
        "2424": str(lmtp),
        "ssl": "sslproto ''",
    }
    for there, changed in here.items():
        assert re.search(rf"\b{re.escape(there)}\b", lines), there
        lines = re.sub(rf"\b{re.escape(there)}\b", changed, lines)
    settings = tmp_path / "fetchmailrc"
    settings.write_text(re.sub(r"set daemon \d+\n", "", lines).replace("…", "secret"))
    settings.chmod(0o600)
    api = httpx.Client(
        base_url=f"{town.server.url}/api/v1", auth=(town.ann.email, town.ann.api_key)
    )
    with api, mailbox(imap) as new:
        found = api.get("/get_stream_id", params={"stream": "general"}).json()
        assert "stream_id" in found, found
        address = api.get(f"/streams/{found['stream_id']}/email_address").json()["email"]
        for number, text in enumerate(["Twelve cups.", "\n"]):
            (new / str(number)).write_text(
                f"Return-Path: <zoe@elsewhere.example>\nDelivered-To: {address}\n"
                "Received: from elsewhere.example by mx.example.com for <chat@example.com>;"
                " Mon, 23 Nov 2026 03:00:00 +0000\n"
                f"From: Zoe <zoe@elsewhere.example>\nTo: Chat <{address}>\nSubject: Plates\n\n"
                f"{text}\n"
            )
            os.chown(new / str(number), new.stat().st_uid, new.stat().st_gid)
        said = ""
        deadline = time.monotonic() + PATIENCE
        while list(new.iterdir()) and time.monotonic() < deadline:
            done = subprocess.run(
                ["fetchmail", "-v", "-f", str(settings), "--pidfile", str(tmp_path / "pid")],
                env={**os.environ, "FETCHMAILHOME": str(tmp_path)},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            said += done.stdout + done.stderr
        wanted: dict[str, Any] = {
            "anchor": "newest",
            "num_before": 9,
            "num_after": 0,
            "apply_markdown": "false",
        }
        messages = api.get("/messages", params=wanted).json()["messages"]
        assert [one["content"] for one in messages] == ["Twelve cups."], said
        # A refused email isn't fetched again and again.
        assert not [one for one in new.parent.glob("[cn]*/*") if one.is_file()], said
