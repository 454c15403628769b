"""The agent examples in docs/integrating.md, run unchanged."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Site

PAGE = Path(__file__).parents[2] / "docs" / "integrating.md"
SITE, ADDRESS = "https://chat.example.com", "ann@example.com"


def blocks(language: str) -> list[str]:
    """The examples in this language."""
    section = PAGE.read_text().partition("## Agents\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def ran(site: Site, command: list[str], **environment: str) -> str:
    """The output of an example."""
    command = [part.replace(SITE, site.server.url) for part in command]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_an_agent_gets_a_key_and_sends_messages(sqlite_site: Site) -> None:
    town = sqlite_site
    make, search = blocks("sh")
    (program,) = blocks("python")
    (configured,) = blocks("json")
    assert json.loads(configured)["mcpServers"]["tertulia"]["url"] == f"{SITE}/mcp"
    made = json.loads(ran(town, ["sh", "-c", make], API_KEY=town.ann.api_key))
    key = made["key"]
    assert made["agent"]["can_write"] is True
    link = ran(town, [sys.executable, "-c", program], KEY=key).strip()
    answer = json.loads(ran(town, ["sh", "-c", search], KEY=key))
    (found,) = answer["result"]["structuredContent"]["messages"]
    assert (found["text"], found["sent_with"]) == ("Good morning!", "agent Helper")
    assert found["link"] == link
