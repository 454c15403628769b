"""The texts of emails, push notifications, and pages in all languages."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.model.invitations import InvitationStatus
from tertulia.model.users import Role
from tertulia.state.audit_log import _IMPORTS
from tertulia.texts import LANGUAGES as AVAILABLE
from tertulia.texts import Texts, language_of, texts
from tertulia.wire.pages.html import preferred_language
from tertulia.wire.pages.mail_pages import NAMES

CLIENT = Path(__file__).parents[2] / "web" / "src" / "words" / "languages.ts"
CODE = Path(__file__).parents[2] / "src" / "tertulia"
PARTS = ("emails", "conversations", "pushes", "pages", "errors", "imports", "bot_messages")
OTHERS = sorted(set(AVAILABLE) - {"en"})


def messages(language: str) -> dict[str, str]:
    """Every text by its path, such as `emails.letters.welcome.subject`."""

    def within(value: Any, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield path, value
            return
        for name, one in value.items():
            yield from within(one, f"{path}.{name}")

    return {k: v for part in PARTS for k, v in within(texts(language, part).texts, part)}


def arguments(text: str) -> set[str]:
    """The names of arguments. A plural form can be a single word."""
    form = r"(?<!plural, one )(?<!plural, other )(?<!\} other )"
    return set(re.findall(form + r"\{(\w+)(?:, plural|\})", text))


def sample(language: str, text: str, count: int) -> str:
    """The text with `count` for each argument."""
    return Texts(language, {}).filled(text, **dict.fromkeys(arguments(text), count))


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_texts_and_arguments(language: str) -> None:
    english, other = messages("en"), messages(language)
    assert other.keys() == english.keys()
    assert {path: arguments(text) for path, text in other.items()} == {
        path: arguments(text) for path, text in english.items()
    }
    assert not [path for path, text in other.items() if not text]
    # No sentence is left in English.
    assert [
        path
        for path, text in other.items()
        if text == english[path] and len(sample(language, text, 2).split()) > 3
    ] == []


@pytest.mark.parametrize("language", AVAILABLE)
def test_every_text_can_be_formatted(language: str) -> None:
    for path, text in messages(language).items():
        for count in (0, 1, 2, 21):
            filled = sample(language, text, count)
            assert not arguments(text) or str(count) in filled or "plural" in text, path
            assert "{" not in filled, path


def test_a_text_has_its_language_s_plural_form() -> None:
    text = "{count, plural, =0 {nothing} one {# thing} other {{count} things of {name}}}"
    english = Texts("en", {"text": text})
    assert english("text", count=0, name="x") == "nothing"
    assert english("text", count=1, name="x") == "1 thing"
    assert english("text", count=2, name="{count}") == "2 things of {count}"
    russian = Texts("ru", {"text": "{n, plural, one {a} few {b} many {c} other {d}}"})
    assert [russian("text", n=n) for n in (1, 21, 3, 5, 1.5)] == ["a", "a", "b", "c", "d"]


def test_the_server_has_the_client_s_languages() -> None:
    imported = set(re.findall(r"import\(\"\./compiled/(\w+)\"\)", CLIENT.read_text("utf-8")))
    assert imported | {"en"} == set(AVAILABLE) <= LANGUAGES.keys()


def test_every_text_is_used_and_none_is_missing() -> None:
    written = "\n".join(
        path.read_text("utf-8") for path in CODE.rglob("*") if path.suffix in {".py", ".html"}
    )
    pages = texts("en", "pages").texts
    archive = texts("en", "archive").texts
    said = set(re.findall(r'\bsay\(\s*"(\w+)"', written))
    assert said <= pages.keys() | archive.keys()
    made = {role.name.lower() for role in Role}
    made |= {f"{kind}_{end}" for kind in NAMES.values() for end in ("off", "turn_off")}
    names = [name for part in PARTS for name in texts("en", part).texts]
    names += texts("en", "emails").texts["letters"]
    unused = [name for name in names if not re.search(rf"[\"']{name}[\"']", written)]
    assert made <= pages.keys()
    assert set(unused) <= made


@pytest.mark.parametrize(
    ("tag", "language"), [("pt-br", "pt"), ("fr", "fr"), ("en-gb", "en"), ("zh-hans", "en")]
)
def test_the_nearest_language_is_used(tag: str, language: str) -> None:
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
def test_a_page_is_in_the_browser_s_language(header: str, language: str) -> None:
    headers = [(b"accept-language", header.encode())] if header else []
    assert preferred_language(Request({"type": "http", "headers": headers}), "pt-br") == language


def test_the_client_names_every_kind_of_audit_record() -> None:
    recorded = re.compile(
        r"(?:Fact|_simple|_account_fact|_domain_set|_about)\(\s*\"([a-z_]+)\""
        r"|kind = \"([a-z_]+)\"|audit\.record\([\w.]+, \"([a-z_]+)\""
    )
    files = (CODE / "state" / "audit_log.py", *(CODE / "wire").rglob("*.py"))
    code = "\n".join(path.read_text() for path in files if "audit" in path.read_text())
    kinds = {kind for found in recorded.findall(code) for kind in found if kind}
    kinds |= {*_IMPORTS.values()}
    kinds |= {f"invitation_{status.value}" for status in InvitationStatus} - {"invitation_open"}
    words = CODE.parents[1] / "web" / "words" / "en" / "manage.json"
    named = json.loads(words.read_text())["audit"]["kinds"]
    assert len(kinds) > 40
    assert sorted(kinds - named.keys()) == []
