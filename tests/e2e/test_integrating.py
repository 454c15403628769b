"""The webhook examples in docs/integrating.md, run unchanged."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

PAGE = (Path(__file__).parents[2] / "docs" / "integrating.md").read_text()
PATIENCE = 60
"""Seconds, at most."""


def block(language: str, containing: str) -> str:
    """The example in this language that contains this text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    (found,) = (one for one in blocks if containing in one)
    return str(found)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_an_incoming_webhook_example_works(sqlite_site: Site) -> None:
    with client_of(sqlite_site.ann, sqlite_site.server) as ann:
        wanted = {"full_name": "Hook", "short_name": "hook", "bot_type": 2}
        made = ok(ann.call_endpoint("bots", method="POST", request=wanted))
        script = block("sh", "external").replace("https://chat.example.com", sqlite_site.server.url)
        done = subprocess.run(
            ["sh", "-c", script],
            env={"KEY": made["api_key"], "PATH": "/usr/local/bin:/usr/bin:/bin"},
            capture_output=True,
            check=True,
            timeout=PATIENCE,
        )
        assert json.loads(done.stdout)["result"] == "success"
        narrow = [{"operator": "topic", "operand": "deploys"}]
        page = {"anchor": "newest", "num_before": 1, "num_after": 0, "narrow": narrow}
        (message,) = ok(ann.get_messages({**page, "apply_markdown": False}))["messages"]
        assert message["content"] == "**Done**: [build 7](https://ci.example.com/7)"


def test_an_outgoing_webhook_example_works(bots_site: Site) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = block("python", "BaseHTTPRequestHandler").replace("5002", str(port))
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        with client_of(bots_site.ann, bots_site.server) as ann:
            url = json.dumps(f"http://127.0.0.1:{port}/")
            wanted = {"full_name": "Echo", "short_name": "echo", "bot_type": 3, "payload_url": url}
            bot_id = ok(ann.call_endpoint("bots", method="POST", request=wanted))["user_id"]
            ok(ann.send_message({"type": "private", "to": [bot_id], "content": "hello"}))
            page = {"anchor": "newest", "num_before": 1, "num_after": 0, "apply_markdown": False}
            end, content = time.monotonic() + PATIENCE, ""
            # If the program starts listening after the first call, the call is repeated.
            while content != "You said: hello":
                assert time.monotonic() < end, content
                time.sleep(0.1)  # A separate process can only be polled.
                (message,) = ok(ann.get_messages({**page, "narrow": []}))["messages"]
                content = message["content"]
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_a_bridge_s_calls_work(sqlite_site: Site) -> None:
    """The program itself isn't run, only its calls with the documented configuration."""
    config = tomllib.loads(block("toml", "gateway"))
    assert {one["account"] for one in config["gateway"][0]["inout"]} == {
        f"{kind}.{name}" for kind in ("zulip", "irc") for name in config[kind]
    }
    channel, topic = config["gateway"][0]["inout"][0]["channel"].split("/topic:")
    with client_of(sqlite_site.ann, sqlite_site.server) as ann, requests.Session() as bridge:
        wanted = {"full_name": "Bridge", "short_name": "bridge", "bot_type": 1}
        made = ok(ann.call_endpoint("bots", method="POST", request=wanted))
        ok(ann.add_subscriptions([{"name": channel}], principals=[made["user_id"]]))
        email = ok(ann.get_user_by_id(made["user_id"]))["user"]["email"]
        assert email.split("@")[0] == config["zulip"]["tertulia"]["Login"].split("@")[0]
        bridge.auth = (email, made["api_key"])

        def asked(method: str, path: str, **form: Any) -> dict[str, Any]:
            query, body = (form, None) if method == "GET" else (None, form)
            url = f"{sqlite_site.server.url}/api/v1/{path}"
            answer = bridge.request(method, url, params=query, data=body, timeout=PATIENCE)
            return ok(answer.json())

        queue = asked("POST", "register", event_types='["message"]')
        streams = {one["stream_id"]: one["name"] for one in asked("GET", "streams")["streams"]}
        said = {"type": "stream", "to": channel, "subject": topic, "content": "hello"}
        ok(ann.send_message(said))
        at = {"queue_id": queue["queue_id"], "last_event_id": queue["last_event_id"]}
        (event,) = asked("GET", "events", **at)["events"]
        message = event["message"]
        assert (streams[message["stream_id"]], message["subject"]) == (channel, topic)
        assert message["sender_full_name"] == "Ann"
        sent = asked("POST", "messages", **{**said, "content": "**cleo**: hello"})["id"]
        asked("PATCH", f"messages/{sent}", content="**cleo**: hello!")
        # A message deleted elsewhere becomes empty.
        asked("PATCH", f"messages/{sent}", content="")
        assert ok(ann.get_raw_message(sent))["raw_content"] == "(deleted)"
