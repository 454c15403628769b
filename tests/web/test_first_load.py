"""The web client's first load stays small."""

import gzip
import re
from importlib import resources

import pytest

MOST = 145_000
"""Bytes of compressed script. With what is loaded right after it, 150 KB."""
_IMPORTED = re.compile(r"(?:from|import)\s*[`\"']\./([\w.-]+\.js)[`\"']")


def test_the_script_of_the_first_load_is_small() -> None:
    built = resources.files("tertulia").joinpath("web")
    if not built.joinpath("index.html").is_file():
        pytest.skip("the web client is not built: make client")
    wanted = set(re.findall(r"assets/([\w.-]+\.js)", built.joinpath("index.html").read_text()))
    sizes: dict[str, int] = {}
    while wanted:
        name = wanted.pop()
        content = built.joinpath("assets", name).read_bytes()
        sizes[name] = len(gzip.compress(content))
        wanted |= set(_IMPORTED.findall(content.decode())) - sizes.keys()
    assert sizes
    assert sum(sizes.values()) <= MOST, sizes
