"""What mails and pushes say: the same in every language."""

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import msgspec
import pytest
from starlette.requests import Request

from tertulia.domain.organization.languages import LANGUAGES
from tertulia.model.users import Role
from tertulia.outbound.words.languages import SAID, language_of
from tertulia.outbound.words.said import Said
from tertulia.wire.pages.speaking import language_wanted
from tertulia.wire.pages.unsubscribe import NAMES

CLIENT = Path(__file__).parents[2] / "web" / "src" / "words" / "languages.ts"
CODE = Path(__file__).parents[2] / "src" / "tertulia"
OTHERS = sorted(SAID.keys() - {"en"})


def texts(said: Said) -> dict[str, str]:
    """Every text by its path, such as `letters.welcome.subject`."""

    def within(value: object, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield path, value
            return
        assert isinstance(value, dict | list | tuple)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, one in items:
            yield from within(one, f"{path}.{name}" if path else str(name))

    return dict(within(msgspec.to_builtins(said), ""))


def facts(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_says_the_same(language: str) -> None:
    english, other = texts(SAID["en"]), texts(SAID[language])
    assert other.keys() == english.keys()
    assert {path: facts(text) for path, text in other.items()} == {
        path: facts(text) for path, text in english.items()
    }
    # An empty text may stay one; a sentence is not left in English.
    assert [path for path, text in other.items() if bool(text) != bool(english[path])] == []
    assert [
        path for path, text in other.items() if text == english[path] and len(text.split()) > 3
    ] == []


def test_mails_speak_what_the_client_speaks() -> None:
    imported = set(re.findall(r"import\(\"\./(\w+)\"\)", CLIENT.read_text("utf-8")))
    assert imported | {"en"} == SAID.keys() <= LANGUAGES.keys()


def test_every_text_is_said_somewhere_and_none_is_missing() -> None:
    written = "\n".join(
        path.read_text("utf-8")
        for path in CODE.rglob("*")
        if path.suffix in {".py", ".html"} and path.parent.name != "words"
    )
    english = SAID["en"]
    assert set(re.findall(r'\bsay\(\s*"(\w+)"', written)) <= english.pages.keys()
    made = {role.name.lower() for role in Role}
    made |= {f"{kind}_{end}" for kind in NAMES.values() for end in ("off", "turn_off")}
    every = [*english.letters, *english.conversations, *english.pushes, *english.pages]
    silent = [name for name in (*every, *english.refusals) if f'"{name}"' not in written]
    assert made <= english.pages.keys()
    assert set(silent) <= made


@pytest.mark.parametrize(
    ("tag", "language"), [("pt-br", "pt"), ("fr", "fr"), ("en-gb", "en"), ("zh-hans", "en")]
)
def test_the_nearest_language_is_taken(tag: str, language: str) -> None:
    assert language_of(tag) == language


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("fr-CA, fr;q=0.9, en;q=0.8", "fr"),
        ("xx, en;q=0.5, ja;q=0.7", "ja"),
        ("de;q=0, *;q=0.5", "pt"),
        ("es;q=nan, ;;,=", "pt"),
        ("", "pt"),
    ],
)
def test_a_page_is_in_the_language_that_the_browser_asks_for(header: str, language: str) -> None:
    headers = [(b"accept-language", header.encode())] if header else []
    assert language_wanted(Request({"type": "http", "headers": headers}), "pt-br") == language
