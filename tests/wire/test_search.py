"""Search in many languages: matches and their highlighting."""

import re
from typing import Any

import pytest

from tertulia.model.tokenizer import phrases_of
from tertulia.wire.api.highlighting import marked
from tests.support import Organization, Person, row

pytestmark = pytest.mark.usefixtures("no_logged_errors")

TEXTS = {
    "en": "The quick brown fox jumps over the lazy dog",
    "url": "See https://docs.python.example.org/3/library/os_path.html#join for **more**",
    "mail": "Write to marie.curie@radium.example.net",
    "path": "It is in src/tertulia/store/finding.py, version v1.2.3",
    "de": "Die Straßenbahn hält in Köln-Mülheim",
    "fr": "Un café crème à l'hôtel",
    "vi": "Tiếng Việt có dấu",
    "tr": "İstanbul'da akşam",
    "ru": "Съешь ещё этих мягких французских булок",
    "el": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "he": "שָׁלוֹם עולם",
    "ar": "السَّلامُ عليكم",
    "hi": "हिन्दी में लिखना",
    "ja": "東京**タワー**は日本の塔です",
    "zh": "我们在北京大学学习中文",
    "ko": "한국어를 배우는 학생",
    "th": "สวัสดีกรุงเทพมหานคร",
    "mixed": "Python入門の第3章",
    "emoji": "Well done 🎉 everybody",
    "quote": 'She said "never again" & left <b>',
}


@pytest.fixture
async def library(org: Organization) -> Organization:
    """A message in each language, in a topic with its name, and what a test adds."""
    await fill(org)
    return org


@pytest.fixture(scope="module")
async def kept_library(shared_org: Organization) -> Organization:
    """The same messages for all read-only tests."""
    await fill(shared_org)
    return shared_org


async def fill(org: Organization) -> None:
    await org.channel("library", "ann", "ben")
    for name, text in TEXTS.items():
        await org["ben"].send("library", name, text)


async def found(who: Person, *terms: Any, **more: Any) -> list[dict[str, Any]]:
    page = {"anchor": "newest", "num_before": 100, "num_after": 0, **more}
    messages: list[dict[str, Any]] = (await who.get("/messages", **page, narrow=terms)).ok[
        "messages"
    ]
    return messages


SEARCHES = [
    ("quick", "en"),
    ("qui", "en"),
    ("uick", ""),
    ("QUICK Fox", "en"),
    ("fox quick", "en"),
    ('"quick brown"', "en"),
    ('"brown quick"', ""),
    ('"qui"', ""),
    ("“quick brown”", "en"),
    ("quick-brown", "en"),
    ("quick missing", ""),
    ("the", "en"),
    ("docs.python.example.org", "url"),
    ("python.example.org", "url"),
    ("example.org", "url"),
    ("example", "url mail"),
    ("https://docs.python.example.org/3/library/os_path.html", "url"),
    ("library/os_path", "url"),
    ("os_path", "url"),
    ("path.html#joi", "url"),
    ("marie.curie@radium.example.net", "mail"),
    ("curie@radium", "mail"),
    ("radium", "mail"),
    ("finding.py", "path"),
    ("store/finding", "path"),
    ("v1.2", "path"),
    ("straßenbahn", "de"),
    ("STRASSEN", "de"),
    ("mulheim", "de"),
    ("Köln-Mül", "de"),
    ("cafe creme", "fr"),
    ("CAFÉ", "fr"),
    ("cafe\u0301", "fr"),
    ("hotel", "fr"),
    ("tieng viet", "vi"),
    ("istanbul", "tr"),
    ("еще", "ru"),
    ("ФРАНЦУЗ", "ru"),
    ("ξεσκεπαζω", "el"),
    ("ΨΥΧΟΦΘΌΡΑ", "el"),
    ("שלום", "he"),
    ("السلام", "ar"),
    ("हिन्दी", "hi"),
    ("東京", "ja"),
    ("京タ", "ja"),
    ("タワー", "ja"),
    ("ﾀﾜｰ", "ja"),
    ("塔", "ja"),
    ("日本", "ja"),
    ("本日", ""),
    ("東京 日本", "ja"),
    ("東日", ""),
    ("京", "ja zh"),
    ("北京大学", "zh"),
    ('"京大"', "zh"),
    ("学学", "zh"),
    ("中文", "zh"),
    ("한국어", "ko"),
    ("국어", "ko"),
    ("학생", "ko"),
    ("กรุงเทพ", "th"),
    ("สวัสดี", "th"),
    ("เทพกรุง", ""),
    ("python", "url mixed"),
    ("入門", "mixed"),
    ("Python入", "mixed"),
    ("第3章", "mixed"),
    ("第3", "mixed"),
    ("🎉", "emoji"),
    ("done 🎉", "emoji"),
    ('"never again"', "quote"),
    ("b", "quote"),
    ("qu", ""),
]


@pytest.mark.parametrize(("search", "names"), SEARCHES)
async def test_matches_are_found_and_highlighted(
    kept_library: Organization, search: str, names: str
) -> None:
    ann = kept_library["ann"]
    expected = set(names.split())
    for apply_markdown in (True, False):
        messages = await found(ann, ["search", search], apply_markdown=apply_markdown)
        assert {message["subject"] for message in messages} == expected
        for message in messages:
            whole = message["match_content"] + message["match_subject"]
            assert '<span class="highlight">' in whole or search == "🎉"
            bare = re.sub(r'<span class="highlight">(.*?)</span>', r"\1", message["match_content"])
            if apply_markdown:
                assert bare == message["content"]
    opposite = {"operator": "search", "operand": search, "negated": True}
    messages = await found(ann, opposite)
    assert {message["subject"] for message in messages} == set(TEXTS) - expected
    assert not any("match_content" in message for message in messages)


async def test_words_topics_and_other_terms_are_combined(library: Organization) -> None:
    ann, ben = library["ann"], library["ben"]
    await library["ann"].send("library", "de", "the tram")
    await ben.write([ann.user_id], "the letter")
    table: list[tuple[list[Any], list[str]]] = [
        ([["search", "de tram"]], ["the tram"]),
        ([["search", "tram"], ["search", "the"]], ["the tram"]),
        ([["search", "the"], ["sender", "ann@example.com"]], ["the tram"]),
        ([["search", "the"], ["is", "dm"]], ["the letter"]),
        ([["search", "the"], ["channel", "library"], ["topic", "en"]], [TEXTS["en"]]),
        ([["search", "example"], ["has", "link"]], [TEXTS["url"], TEXTS["mail"]]),
        (
            [["search", "the"], {"operator": "search", "operand": "tram", "negated": True}],
            [TEXTS["en"], "the letter"],
        ),
        (
            [
                {"operator": "search", "operand": "the", "negated": True},
                {"operator": "sender", "operand": "ann@example.com"},
            ],
            [],
        ),
    ]
    for terms, texts in table:
        messages = await found(ann, *terms, apply_markdown=False)
        assert [message["content"] for message in messages] == texts, terms


async def test_a_phrase_does_not_span_topic_and_message(
    library: Organization,
) -> None:
    await library["ann"].send("library", "green", "tea")
    assert await found(library["ann"], ["search", '"green tea"']) == []
    assert await found(library["ann"], ["search", '"tea green"']) == []
    assert len(await found(library["ann"], ["search", "green tea"])) == 1


async def test_edited_moved_and_deleted_messages_are_found_in_their_current_form(
    library: Organization,
) -> None:
    ann = library["ann"]
    message_id = await ann.send("library", "before", "東京 apples")
    (await ann.patch(f"/messages/{message_id}", content="京都 pears")).ok
    (await ann.patch(f"/messages/{message_id}", topic="after")).ok
    own = ["sender", "ann@example.com"]
    table = [("東京", 0), ("apples", 0), ("before", 0), ("京都 pears", 1), ("after", 1)]
    for search, count in table:
        assert len(await found(ann, ["search", search], own)) == count, search
    (await ann.delete(f"/messages/{message_id}")).ok
    assert await found(ann, ["search", "京都"]) == []


ODD = [
    "a" * 5000,
    "".join(chr(0x4E00 + n) for n in range(3000)),
    "日" * 200,
    "🎉" * 200,
    "x-" * 200,
    "-".join(str(n) for n in range(1500)),
    "\u0301" * 100,
    "'\\:*&|!()<->",
    "NEAR AND",
]


async def test_an_unusual_search_is_answered(library: Organization) -> None:
    ann = library["ann"]
    for number, search in enumerate(ODD):
        with row(search):
            topic = f"odd {number}"
            await ann.send("library", topic, search[:9000])
            messages = await found(ann, ["search", search])
            assert [m["subject"] for m in messages] == ([topic] if phrases_of(search) else [])


async def test_a_search_has_at_most_a_hundred_words(org: Organization) -> None:
    await org.channel("library", "ann")
    words = [f"w{n}" for n in range(101)]
    await org["ann"].send("library", "t", " ".join(words))
    assert len(await found(org["ann"], ["search", " ".join(words[:100])])) == 1
    page = {"anchor": "newest", "num_before": 1, "num_after": 0}
    reply = await org["ann"].get("/messages", **page, narrow=[["search", " ".join(words)]])
    reply.refused("BAD_NARROW")


MARK = '<span class="highlight">{}</span>'


@pytest.mark.parametrize(
    ("html", "search", "expected"),
    [
        ("<p>green tea</p>", "tea", f"<p>green {MARK.format('tea')}</p>"),
        ("<p>tea</p><p>pot</p>", "teapot", "<p>tea</p><p>pot</p>"),
        ("<p>a &lt;b&gt; c</p>", "b", f"<p>a &lt;{MARK.format('b')}&gt; c</p>"),
        ("<p>R&amp;D</p>", "R&D", f"<p>{MARK.format('R&amp;D')}</p>"),
        ("<p>caf&eacute;</p>", "cafe", f"<p>{MARK.format('caf&eacute;')}</p>"),
        ('<a href="tea">x</a>', "tea", '<a href="tea">x</a>'),
        (
            "<p>green <strong>tea</strong> pot</p>",
            '"green tea pot"',
            f"<p>{MARK.format('green ')}<strong>{MARK.format('tea')}</strong>"
            f"{MARK.format(' pot')}</p>",
        ),
        (
            "<p>日<strong>本</strong>語</p>",
            "日本",
            f"<p>{MARK.format('日')}<strong>{MARK.format('本')}</strong>語</p>",
        ),
        ("<p>日<br>\n本</p>", "日本", "<p>日<br>\n本</p>"),
        ("<p>lt amp span class</p>", "span", f"<p>lt amp {MARK.format('span')} class</p>"),
    ],
)
def test_highlights_stay_within_elements(html: str, search: str, expected: str) -> None:
    assert marked(html, phrases_of(search)) == expected
