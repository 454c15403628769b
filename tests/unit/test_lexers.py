"""Generated code that makes grammars slow, for every highlighted language.

The tests use a few pieces for each language; `make lexers` tries thousands and reports which
languages were stopped.
"""

import asyncio
import os
import random
from collections.abc import Iterator

import pytest

from tertulia.markup import code
from tertulia.markup.elements import escaped
from tertulia.markup.worker_rendering import HIGHLIGHT, MAX_CODE_SECONDS
from tertulia.workers import TaskBudget, TaskLimitExceeded, TaskWorker

SHORT = 2
EXAMPLES = int(os.environ.get("LEXERS", SHORT))
"""Pieces of code per language."""
LENGTHS = (24, 60, 300, 3000)

OPENING = [
    *("", '"', "'", '"""', "'''", "`", "$'", '$"', 'r"', 'r"""', "@'", '@"', "q{", "%q(", "qq/"),
    *("/*", "//", "#", "--", "<!--", "(*", "{-", "#|", "#=", "/**", "<<EOF\n", "<<-'X'\n", "$("),
    *(
        "RUN ",
        'RUN "',
        "${",
        "#{",
        "<",
        "<a ",
        '<a b="',
        "<?php ",
        "<script>",
        "@",
        "@@",
        "\\",
        "[",
    ),
    *("(", "{", "0x", "1.", "1e", "a.", "#include ", "import ", "class ", "def ", "function "),
    *(
        "let ",
        "var ",
        "SELECT ",
        "GET / HTTP/1.1\n",
        "[a]\nb=",
        "a:\n  ",
        "- ",
        "key: |\n ",
        "@@ -",
    ),
    *("Traceback (most recent call last):\n", ">>> ", "module ", "type ", "struct ", "/", "=~ /"),
    *("\\begin{", "$$", "{{", "{%", "case ", "match ", "fn ", "proc ", "macro ", "template<"),
]
FRAGMENTS = [
    *(
        "\\",
        "\\\\",
        '"',
        "'",
        '\\"',
        "\\'",
        "`",
        " ",
        "\t",
        "\n",
        "\\\n",
        " \n",
        "a",
        "a.",
        "a a",
        "a,",
    ),
    *(
        "a b\n",
        "0",
        "0_",
        "0.",
        "1e",
        "_",
        "-",
        "--",
        "*",
        "*a",
        "/",
        "//",
        "/*",
        "*/",
        "(",
        ")",
        "()",
    ),
    *(
        "((",
        "[",
        "]",
        "[]",
        "{",
        "}",
        "{}",
        "<",
        ">",
        "<>",
        "<a",
        "<a>",
        "</",
        "$",
        "${",
        "$(",
        "#",
    ),
    *(
        "#{",
        "@",
        "@a",
        "|",
        "||",
        "&",
        "&&",
        "=",
        "a=",
        "a=b ",
        ":",
        "::",
        "a:",
        ";",
        "!",
        "?",
        "%",
    ),
    *(
        "%%",
        "^",
        "~",
        "+",
        "++",
        "é",
        "☃",
        "\x00",
        "a(",
        "a<",
        "a[",
        "a{",
        "::a",
        " a",
        ", ",
        "\r",
        "==",
    ),
]
ENDINGS = ["", "!", "\x00", "\n", '"', "'", ")", "}", ">", "\\", "☃", "a"]


LIKELY = [
    (before, unit)
    for before in ('"', "'", '"""', 'r"""', "$'", "`", "(*", "/*", "RUN ", "<", "", "[", "@")
    for unit in ("\\", '\\"', '"', "a.", "*a.", "a ", " ", "(", "[", "\n", "\\\n", "a,")
]
"""Kinds of code that have made grammars slow before."""
LIKELY_LENGTH = 60


def pieces(name: str, count: int) -> Iterator[str]:
    """Pieces of code that may make a grammar slow: an opening token, and then the same again and
    again. The same each time."""
    made = random.Random(name)
    for before, unit in made.sample(LIKELY, min(count, len(LIKELY))):
        yield before + unit * (LIKELY_LENGTH // len(unit))
    for number in range(count - len(LIKELY)):
        unit = "".join(made.choices(FRAGMENTS, k=made.choice([1, 1, 2, 2, 3])))
        length = LENGTHS[number % len(LENGTHS)]
        before = "".join(made.choices(OPENING, k=made.choice([1, 1, 2])))
        yield before + unit * max(1, length // len(unit)) + made.choice(ENDINGS)


@pytest.mark.parametrize("name", sorted(code.HIGHLIGHTED))
async def test_code_is_highlighted_or_plain_and_the_event_loop_continues(
    name: str, colouring: TaskWorker
) -> None:
    stopped: list[str] = []
    for source in pieces(name, EXAMPLES):
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        turning = asyncio.create_task(turn())
        try:
            shown = await colouring.call(
                HIGHLIGHT, source, name, allowance=TaskBudget(MAX_CODE_SECONDS, 120)
            )
        except TaskLimitExceeded:
            stopped.append(source)
            assert turns > 10
        else:
            assert shown is not None
            assert len(shown) < 100 + 60 * len(escaped(source))
        finally:
            turning.cancel()
    if stopped:
        print(f"{name}: {len(stopped)} of {EXAMPLES} were stopped, as {min(stopped, key=len)!r}")


@pytest.fixture(scope="module")
def colouring() -> TaskWorker:
    """A worker process for these tests."""
    return TaskWorker("lexers", memory=1024 * 1024 * 1024, idle_seconds=5)
