"""Texts that people read follow docs/voice.md."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tertulia.cli.config import described_settings
from tertulia.wire.api.organization.endpoints import UpdateRealm
from tertulia.wire.api.settings import SettingParams
from tertulia.wire.http.parameters import declared
from tertulia.wire.pages.help import help_topics
from tests.cli.support import command_line

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "voice.md"
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench/README.md")
    if page != GUIDE
)
CODE = ("src/tertulia", "tests", "bench")
TEXTS = sorted(
    [*(ROOT / "web" / "words" / "en").glob("*.json"), ROOT / "src/tertulia/texts/en.json"]
)


def avoided() -> re.Pattern[str]:
    """The phrases in the guide's table."""
    rows = re.findall(r"^\| (.+?) \| ", GUIDE.read_text("utf-8"), re.MULTILINE)
    phrases = [row.replace(r"\|", "|") for row in rows if row != "avoid"]
    assert len(phrases) > 10
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


AVOIDED = avoided()


def values(texts: object) -> Iterator[str]:
    if isinstance(texts, str):
        yield texts
    elif isinstance(texts, dict | list):
        for one in texts.values() if isinstance(texts, dict) else texts:
            yield from values(one)


def found_in(text: str) -> list[str]:
    """The phrases to avoid in a text, outside of code and quotation marks."""
    plain = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [match[0] for match in AVOIDED.finditer(" ".join(plain.split()))]


@pytest.mark.parametrize("text", ["Whoever joins", "It is\nsaid there", "SHALL we", "by which you"])
def test_a_phrase_to_avoid_is_found(text: str) -> None:
    assert found_in(text)


def test_code_is_skipped() -> None:
    assert not found_in("`whoever` and\n```\nshall\n```\nEmail addresses are shown.")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_avoid_these_phrases(path: Path) -> None:
    texts = values(json.loads(path.read_text("utf-8")))
    assert {text: phrases for text in texts if (phrases := found_in(text))} == {}


def prose(source: str) -> Iterator[str]:
    """The docstrings and comments of Python code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def names(source: str) -> Iterator[str]:
    """The words of the names of functions and classes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name.replace("_", " ")


IN_CODE = re.compile("(?:in|by|of) which|(?:there )?is none", re.IGNORECASE)
"""Phrases that comments may use: a reference, and Python's None."""


@pytest.mark.parametrize("directory", CODE)
def test_docstrings_and_comments_avoid_them(directory: str) -> None:
    wrong = [
        (path.name, text[:80], phrases)
        for path in sorted((ROOT / directory).rglob("*.py"))
        if path != Path(__file__)
        for text in prose(path.read_text("utf-8"))
        if (phrases := [one for one in found_in(text) if not IN_CODE.fullmatch(one)])
    ]
    assert wrong == []


def help_texts(command: Any) -> Iterator[str]:
    """Everything that `--help` prints about a command and its subcommands."""
    yield from filter(None, (command.help, command.epilog))
    for one in command.params:
        yield one.help or ""
    for inner in getattr(command, "commands", {}).values():
        yield from help_texts(inner)


@pytest.mark.parametrize(
    "texts",
    [
        list(help_texts(command_line())),
        [one.about for one in described_settings()],
        [one.description for one in (*declared(UpdateRealm), *declared(SettingParams))],
        [text for page in help_topics().values() for text in (page.title, *page.paragraphs)],
    ],
    ids=["command line", "server settings", "organization and personal settings", "help pages"],
)
def test_texts_in_the_program_avoid_these_phrases(texts: list[str]) -> None:
    assert len(texts) > 10
    assert {text: phrases for text in texts if (phrases := found_in(text))} == {}


@pytest.mark.parametrize("page", PAGES)
def test_pages_avoid_these_phrases(page: str) -> None:
    assert found_in((ROOT / page).read_text("utf-8")) == []


def test_spelling_is_correct(tmp_path: Path) -> None:
    """Of texts, pages, and the names, docstrings, and comments of the code."""
    code = tmp_path / "code"
    with code.open("w", encoding="utf-8") as lines:
        for directory in CODE:
            for path in sorted((ROOT / directory).rglob("*.py")):
                source = path.read_text("utf-8")
                for text in (*prose(source), *names(source)):
                    lines.write(f"{path}: {' '.join(text.split())}\n")
    pages = (*TEXTS, *(ROOT / page for page in PAGES), GUIDE)
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "-L", "inout,beginin,tryin", *pages, code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
