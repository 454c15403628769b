"""Splitting text into words for search."""

import cProfile
import pstats
import random
import re
import sys
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.model import tokenizer
from tertulia.model.channels import topic_key
from tertulia.model.tokenizer import (
    Phrase,
    fold_texts,
    folded_contain,
    phrases_of,
    placed_words,
    places,
    separated_words,
    words_of,
)


def contain_phrases(texts: Iterable[str], phrases: Iterable[Phrase]) -> bool:
    return folded_contain(fold_texts(texts), phrases)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("?! -- ...", ""),
        ("Hello, World!", "hello world"),
        ("snake_case and kebab-case", "snake case and kebab case"),
        ("https://www.Example.com/a/b.html?x=1#y", "https www example com a b html x 1 y"),
        ("ann@example.com 10.0.0.1", "ann example com 10 0 0 1"),
        ("3.14 1e5 2026-11-21", "3 14 1e5 2026 11 21"),
        ("Straße STRASSE", "strasse strasse"),
        ("Café Cafe\u0301 ÅNGSTRÖM ñandú", "cafe cafe angstrom nandu"),
        ("ﬁne ① \uff37\uff49de", "fine 1 wide"),
        ("ΣΟΦΊΑ ὀδυσσεύς", "σοφια οδυσσευσ"),
        ("Ёлка Йод", "елка иод"),
        ("İstanbul \u0131ş\u0131k", "istanbul \u0131s\u0131k"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد كـــتاب", "محمد كتاب"),
        ("हिन्दी में", "हिन्दी में"),
        ("zero\u200bwidth soft\u00adhyphen", "zerowidth softhyphen"),
        ("日本語", "日本 本語 語"),
        ("日 本", "日 本"),
        ("日**本**語 ~~日~~本", "日本 本語 語 日本 本"),
        ("**日**x", "日 x"),
        ("Python入門3", "python 入門 門 3"),
        ("ｶﾞｷﾞ か\u3099", ["ガギ", "キ゚"][0] + " ギ が"),
        ("한국어", "한국 국어 어"),
        ("\u1112\u1161\u11ab", "한"),
        ("กรุง", "กร รุ ุง ง"),
        ("ພາສາ", "ພາ າສ ສາ າ"),
        ("🎉👍🏽 ok", "🎉 👍 ok"),
        ("✔ done", "✔ done"),
    ],
)
def test_text_is_split_into_words(text: str, words: str) -> None:
    assert words_of(text) == words.split()


def test_spellings_of_one_topic_have_the_same_words() -> None:
    folding = [one for one in map(chr, range(sys.maxunicode + 1)) if topic_key(one) != one]
    chance = random.Random(1)
    for one in folding:
        text = "".join(chance.choices("aB ß日本ｶﾞ\u0301\u0345ก-'i", k=5)) + one
        text += "".join(chance.choices("aB ß日本ｶﾞ\u0301\u0345ก-'i", k=2))
        assert words_of(text) == words_of(topic_key(text)), text


def test_a_very_long_word_counts_by_its_start() -> None:
    assert words_of("a" * 5000) == ["a" * 100] == words_of("ä" * 5000)
    assert separated_words("a" * 101) == "a" * 100
    assert separated_words(f"{'ä' * 101} b") == f"{'a' * 100} b"
    assert phrases_of("a" * 5000) == (Phrase(("a" * 100,), is_open=True),)


@pytest.mark.parametrize("seed", range(20))
def test_words_are_the_same_with_and_without_positions(seed: int) -> None:
    rng = random.Random(seed)
    letters = "aB1ßéİ日本ｶﾞが\u3099 \n*~_-.'🎉✔\u0301\u200d\u1161한กุकि²½①Ǆ"
    for _ in range(300):
        text = "".join(rng.choices(letters, k=rng.randint(0, 12)))
        placed = list(placed_words(text))
        assert words_of(text) == [word.text for word in placed], text
        indexed = re.split(r"[\x00-/:-@\[-`{-\x7f]+", separated_words(text))
        assert words_of(text) == [word.lower() for word in indexed if word], text
        for word in placed:
            assert 0 <= word.start < word.end <= len(text)


@pytest.mark.parametrize(
    ("search", "phrases"),
    [
        ("", []),
        ('!!! "" \'', []),
        ("tea", [(["tea"], True)]),
        ("TEA tea", [(["tea"], True)]),
        ("green tea", [(["green"], True), (["tea"], True)]),
        ("to be", [(["to"], False), (["be"], False)]),
        ('"green tea"', [(["green", "tea"], False)]),
        ('"tea"', [(["tea"], False)]),
        ("“green tea” «now»", [(["green", "tea"], False), (["now"], False)]),
        ('a"b c"', [(["a"], False), (["b", "c"], False)]),
        ('"unbalanced tea', [(["unbalanced"], True), (["tea"], True)]),
        ("example.com/pat", [(["example", "com", "pat"], True)]),
        ("example.com/pa", [(["example", "com", "pa"], False)]),
        ("日本語", [(["日本", "本語"], False)]),
        ("日", [(["日"], True)]),
        ('"日"', [(["日"], True)]),
        ("Python入", [(["python", "入"], True)]),
        ("入門3", [(["入門", "門", "3"], False)]),
    ],
)
def test_a_search_is_split_into_phrases(search: str, phrases: list[tuple[list[str], bool]]) -> None:
    assert phrases_of(search) == tuple(Phrase(tuple(words), is_open) for words, is_open in phrases)


@pytest.mark.parametrize(
    ("search", "text", "marked"),
    [
        ("tea", "Tea, teapot, steam", "[Tea], [teapot], steam"),
        ('"tea"', "Tea, teapot", "[Tea], teapot"),
        ("cafe", "le Café", "le [Café]"),
        ("strasse", "Hauptstraße Straße", "Hauptstraße [Straße]"),
        ('"green tea"', "green tea green  TEA", "[green tea] [green  TEA]"),
        ("example.com", "see www.example.com/x", "see www.[example.com]/x"),
        ("本語", "日本語の本", "日[本語]の本"),
        ("本", "日本語の本", "日[本]語の[本]"),
        ("กรุง", "ที่กรุงเทพ", "ที่[กรุง]เทพ"),
        ("b a", "a b", "[a] [b]"),
        ("🎉", "so 🎉!", "so [🎉]!"),
        ("none", "a b", "a b"),
        ("tea", "", ""),
    ],
)
def test_matches_in_a_text_have_positions(search: str, text: str, marked: str) -> None:
    made, at = "", 0
    for start, end in places(text, phrases_of(search)):
        made += f"{text[at:start]}[{text[start:end]}]"
        at = end
    assert made + text[at:] == marked


LETTERS = "aAb1ßéİ日本が\u3099 \n*~_-.'🎉\u0301…«½ا"


@pytest.mark.parametrize("seed", range(10))
def test_a_phrase_has_the_same_positions_whatever_else_a_text_contains(seed: int) -> None:
    """A script without spaces, or an emoji, elsewhere in the text changes the algorithm."""
    rng = random.Random(seed)
    for _ in range(500):
        text = "".join(rng.choices(LETTERS, k=rng.randint(0, 20)))
        begin = rng.randint(0, len(text))
        phrases = phrases_of(text[begin : begin + rng.randint(1, 6)] or "a")
        found = places(text, phrases)
        for more in (" . 東", " . 🎉", " . ﬁ"):
            there = [one for one in places(text + more, phrases) if one[1] <= len(text)]
            assert there == found, (text, phrases)


@pytest.mark.parametrize("seed", range(10))
def test_a_text_contains_its_words(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        texts = ["".join(rng.choices(LETTERS, k=rng.randint(0, 12))) for _ in range(2)]
        part = rng.choice(texts)[rng.randint(0, 5) :][: rng.randint(1, 5)] or "b"
        phrases = phrases_of(rng.choice([part, f'"{part}"', part + " a"]))
        expected = all(any(is_among(words_of(t), one) for t in texts) for one in phrases)
        assert contain_phrases(texts, phrases) is expected, (texts, phrases)


def is_among(words: list[str], phrase: Phrase) -> bool:
    *before, last = phrase.words
    stretches = (words[n : n + len(before) + 1] for n in range(len(words) - len(before)))
    return any(
        one[:-1] == before and (one[-1].startswith(last) if phrase.is_open else one[-1] == last)
        for one in stretches
    )


def test_a_text_contains_a_word_that_counts_by_its_start() -> None:
    assert contain_phrases(["a" * 5000], phrases_of("a" * 3000))
    assert contain_phrases(["x " + "a" * 5000 + " y"], phrases_of(f'"{"a" * 100} y"'))
    assert places("a" * 200 + " b", phrases_of("a" * 100)) == [(0, 200)]
    assert not contain_phrases(["a" * 99], phrases_of("a" * 100))


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "abc"]), max_size=30)


@given(WORDS, st.lists(st.sampled_from(["a", "b", "ab"]), min_size=2, max_size=8), st.booleans())
def test_a_long_phrase_is_found_like_a_short_one(
    text: list[str], phrase: list[str], is_open: bool
) -> None:
    wanted = Phrase(tuple(phrase), is_open)
    expected = [first for first in range(len(text)) if is_at(text[first:], wanted)]
    assert list(tokenizer._beginnings(text, wanted)) == expected


def is_at(text: list[str], phrase: Phrase) -> bool:
    return is_among(text[: len(phrase.words)], phrase)


@pytest.mark.parametrize("one", ["a", "é", "字"])
def test_a_long_phrase_is_compared_fast_with_a_repetitive_text(one: str) -> None:
    between = "" if one == "字" else " "
    text = between.join([one] * 5000)
    missing = phrases_of('"' + between.join([*[one] * 2400, "x"]) + '"')
    found = phrases_of('"' + between.join([one] * 2400) + '"')
    assert calls(lambda: contain_phrases([text], missing)) < 100_000
    assert calls(lambda: places(text, found)) < 300_000
    assert not contain_phrases([text], missing)
    assert contain_phrases([text], found)
    assert places(text, found) == [(0, len(text))]
    assert places(text, missing) == []


def test_a_long_phrase_is_compared_about_once_per_word() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __ne__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__ne__(self, other)

        __eq__ = str.__eq__

    text = [Counted("a")] * 5000
    assert list(tokenizer._beginnings(text, Phrase(("a",) * 2400 + ("x",)))) == []
    assert compared < 20_000


def calls(work: Callable[[], object]) -> int:
    """The number of its function calls."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # it is there


def test_plain_text_has_the_same_words_as_when_scanned_by_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(4)
    signs = "日本語テスト한국ไทย abcäéß.,-*~ー゙ｶﾞ１２ﬁ😀\n\t　\u0301①é:'_"
    texts = ["".join(chance.choices(signs, k=chance.randrange(1, 14))) for _ in range(5000)]
    texts += ["日" * 3 + "x" * 120, "x" * 120 + "日"]
    assert 1000 < sum(map(tokenizer._is_plain, texts)) < 4000
    found = [(words_of(text), list(placed_words(text))) for text in texts]
    monkeypatch.setattr(tokenizer, "_is_plain", lambda _: False)
    for text, (words, placed) in zip(texts, found, strict=True):
        assert (words, placed) == (words_of(text), list(placed_words(text))), text
        assert words == [word.text for word in placed]
