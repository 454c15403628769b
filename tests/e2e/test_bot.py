"""A `zulip_bots` bot in its own process answers mentions."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zulip

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

HANDLER = """
class EchoHandler:
    told = 0

    def usage(self):
        return "Says again what it is told."

    def handle_message(self, message, bot_handler):
        self.told += 1
        bot_handler.react(message, "tada")
        sent = bot_handler.send_reply(message, f"{self.told}: {message['content']}")
        other = f"{self.told}, {sent['id']}"
        bot_handler.update_message({"message_id": sent["id"], "content": other})
        bot_handler.send_reply(message, message["content"])


handler_class = EchoHandler
"""
RUN = "import logging; logging.basicConfig(level=10); from zulip_bots.run import main; main()"
"""Its log shows each answered request."""
PATIENCE = 60
"""Seconds, at most."""


@contextmanager
def running(directory: Path, key: str, email: str, site: str) -> Iterator[None]:
    """The bot, running within the context."""
    (directory / "echo.py").write_text(HANDLER)
    (directory / "zuliprc").write_text(f"[api]\nemail={email}\nkey={key}\nsite={site}\n")
    command = [sys.executable, "-c", RUN, "echo.py", "--config-file", "zuliprc"]
    with (directory / "bot.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ)
        )
    try:
        yield
        assert process.poll() is None, (directory / "bot.log").read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE)


def awaited(look: Callable[[], list[Any]], count: int) -> list[Any]:
    """Return what `look` finds as soon as there is enough."""
    end = time.monotonic() + PATIENCE
    while len(found := look()) < count:
        assert time.monotonic() < end, found
        time.sleep(0.1)  # A separate process can only be polled.
    return found


def test_a_bot_answers_a_mention_and_a_direct_message(site: Site, tmp_path: Path) -> None:
    with client_of(site.ann, site.server) as ann, client_of(site.ben, site.server) as ben:
        wanted = {"full_name": "Echo", "short_name": "echo", "bot_type": 1}
        made = ok(ann.call_endpoint("bots", method="POST", request=wanted))
        bot_id, email = made["user_id"], ok(ann.get_user_by_id(made["user_id"]))["user"]["email"]
        ok(ann.add_subscriptions([{"name": "general"}], principals=[bot_id]))

        def said(client: zulip.Client, *narrow: tuple[str, Any]) -> list[dict[str, Any]]:
            terms = [{"operator": operator, "operand": operand} for operator, operand in narrow]
            page = {"anchor": "newest", "num_before": 50, "num_after": 0, "narrow": terms}
            page["apply_markdown"] = False
            messages: list[dict[str, Any]] = ok(client.get_messages(page))["messages"]
            return [message for message in messages if message["sender_id"] == bot_id]

        with running(tmp_path, made["api_key"], email, site.server.url):
            # It only receives messages sent after it registered its queue.
            log = tmp_path / "bot.log"
            awaited(lambda: re.findall(rb'POST /\S+/register HTTP/1.1" 200', log.read_bytes()), 1)
            general = {"type": "stream", "to": "general", "topic": "bots"}
            ok(ben.send_message({**general, "content": "nobody in particular"}))
            asked = ok(ben.send_message({**general, "content": "@**Echo** sing!"}))["id"]
            topic = (("channel", "general"), ("topic", "bots"))
            first, second = awaited(lambda: said(ben, *topic), 2)
            assert [m["content"] for m in (first, second)] == [f"1, {first['id']}", "sing!"]
            shown = ok(ben.get_raw_message(asked))["message"]
            assert [(r["emoji_name"], r["user_id"]) for r in shown["reactions"]] == [
                ("tada", bot_id)
            ]
            ok(ben.send_message({"type": "private", "to": [bot_id], "content": "*in* private"}))

            def told_privately() -> list[str]:
                return [one["content"] for one in said(ben, ("dm", bot_id), ("search", "private"))]

            # Its first reply contains the word too, until it's edited.
            awaited(lambda: [one for one in told_privately() if one == "*in* private"], 1)
            assert told_privately() == ["*in* private"]
            assert len(said(ben, *topic)) == 2
