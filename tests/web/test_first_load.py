"""The web client's first load stays small."""

import gzip
import re
from importlib import resources
from importlib.resources.abc import Traversable

import pytest

MOST = 145_000
"""Bytes of compressed script until the client can be used."""
FIRST_WORDS = 11_000
"""Bytes of compressed script and styles until a conversation's words are shown. At 400 kbit/s, they
and the messages take 2 seconds."""
_IMPORTED = re.compile(r"(?:from|import)\s*[`\"']\./([\w.-]+\.js)[`\"']")


@pytest.fixture
def built() -> Traversable:
    """The folder of the built client."""
    folder = resources.files("tertulia").joinpath("web")
    if not folder.joinpath("index.html").is_file():
        pytest.skip("the web client is not built: make client")
    return folder


def sizes(built: Traversable, names: list[str]) -> dict[str, int]:
    """The compressed sizes of assets and of the scripts that they import."""
    wanted = set(names)
    found: dict[str, int] = {}
    while wanted:
        name = wanted.pop()
        content = built.joinpath("assets", name).read_bytes()
        found[name] = len(gzip.compress(content))
        if name.endswith(".js"):
            wanted |= set(_IMPORTED.findall(content.decode())) - found.keys()
    return found


def test_the_script_of_the_first_load_is_small(built: Traversable) -> None:
    page = built.joinpath("index.html").read_text()
    found = sizes(built, re.findall(r"assets/([\w.-]+\.js)", page))
    assert len(found) > 2
    assert sum(found.values()) <= MOST, found


def test_the_first_words_need_little(built: Traversable) -> None:
    """The page without messages: the styles before the body, and the first script."""
    page = built.joinpath("index.html").read_text()
    styles = re.findall(r"assets/([\w.-]+\.css)", page.partition("<body>")[0])
    script = re.search(r"<script type=\"module\" async[^>]*assets/([\w.-]+\.js)", page)
    assert script is not None
    found = sizes(built, [*styles, script[1]])
    assert sum(found.values()) <= FIRST_WORDS, found
