"""The tables of `docs/specification`: every test that they name exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
PAGES = sorted((TESTS.parent / "docs" / "specification").glob("*.md"))
_NAMED = re.compile(r"`([a-z0-9_/]+\.py)::(test_\w+)`")


def rows(page: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the statement and the tests of each row, without the heads of the tables."""
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or re.fullmatch(r"[|\s:-]+", line):
            continue
        if number < len(lines) and re.fullmatch(r"[|\s:-]+", lines[number]):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        yield number, cells[0], cells[-1]


@cache
def functions(path: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((TESTS / path).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_statement_names_a_test_that_exists(page: Path) -> None:
    wrong = []
    for number, statement, shown in rows(page):
        named = _NAMED.findall(shown)
        missing = [
            f"{path}::{name}"
            for path, name in named
            if not (TESTS / path).is_file() or name not in functions(path)
        ]
        if not statement or not named or missing:
            wrong.append(f"{page.name}:{number} names {missing or 'no test'}")
    assert not wrong


LIST = TESTS.parent / "docs" / "specification.md"


def test_the_list_has_every_page_and_no_other() -> None:
    listed = LIST.read_text()
    assert set(re.findall(r"\(specification/([\w-]+\.md)\)", listed)) == {p.name for p in PAGES}


def test_the_list_leads_to_headings_that_are_there() -> None:
    there = {
        (page.name, re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
        for page in PAGES
        for heading in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    }
    named = set(re.findall(r"\(specification/([\w-]+\.md)#([\w-]+)\)", LIST.read_text()))
    assert named <= there
