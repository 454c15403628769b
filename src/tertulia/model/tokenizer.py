"""Splitting text into words for search, the same for both databases and for highlighting matches.

A word is a run of letters and digits, in lower case and without accents ("folded"). A run in a
script without spaces is split into pairs of adjacent characters and its last character, so that any
part of it is found as consecutive pairs.
"""

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

MAX_LENGTH = 100
"""The number of a word's characters that are compared."""
LONG_PHRASE = 20
"""Longer phrases are matched by Knuth-Morris-Pratt in linear time; for others, trying each word is
faster."""
MIN_BEGINNING = 3
"""Words of at least this many characters also find words that begin with them. For shorter ones,
that would be slow and useless."""

_ACCENTS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
_IGNORED = re.compile(f"[{_ACCENTS}{_POINTS}\u0640\u00ad\u200b-\u200d\u2060\ufeff]")
"""Accents, vowel points, stretching strokes and invisible characters."""
_JOINING = "\u3099\u309a\uff9e\uff9f\u1160-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
"""Voicing marks of kana and parts of Korean syllables: they belong to the character before."""
_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u318e\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Burmese), and Korean, which
writes compounds and particles without them."""
_UNSPACED = re.compile(f"[{_SCRIPTS}]")
_CHARACTERS = re.compile(f"[{_SCRIPTS}][{_JOINING}]*|.", re.DOTALL)
_EMPHASIS = "*~"
"""Markdown characters that don't end a run, since they aren't shown."""
_ASCII_WORDS = re.compile("[a-z0-9]+")
_PLAIN_RUNS = re.compile(rf"[{_SCRIPTS}]+|[^\s{_SCRIPTS}]+")
_SPECIAL = re.compile(f"[{_JOINING}{_EMPHASIS}]")
"""Characters that belong to the one before them, or don't end a run."""


class Word(Struct, frozen=True):
    """A word of a text with its position. `is_pair` means that it's from a script without spaces,
    and `is_last` that it's the single last character of such a run. `ends` are the positions where
    its characters end."""

    text: str
    start: int
    ends: tuple[int, ...]
    is_pair: bool = False
    is_last: bool = False

    @property
    def end(self) -> int:
        return self.ends[-1]


class Phrase(Struct, frozen=True):
    """Consecutive words. If `is_open`, the last one can be the beginning of a longer word."""

    words: tuple[str, ...]
    is_open: bool = False


class _Character(Struct):
    text: str
    start: int
    end: int
    is_unspaced: bool


class _Folding(dict[int, str]):
    """Cache of folded characters for `str.translate`. Separators become spaces."""

    def __missing__(self, code: int) -> str:
        folded = _folded(chr(code))
        kept = (f" {text} " if _is_symbol(text) else text for text in folded or "")
        self[code] = " " if folded is None else "".join(kept)
        return self[code]


_FOLDING = _Folding()


def words_of(text: str) -> list[str]:
    """Return the words of a text in order."""
    if text.isascii():
        return [word[:MAX_LENGTH] for word in _ASCII_WORDS.findall(text.lower())]
    folded = text.translate(_FOLDING)
    if _UNSPACED.search(folded) is None:
        return [word[:MAX_LENGTH] for word in folded.split()]
    if not _is_plain(text):
        return [word.text for word in placed_words(text)]
    words: list[str] = []
    for run in _PLAIN_RUNS.findall(folded):
        if _UNSPACED.match(run) is None:
            words.append(run[:MAX_LENGTH])
        else:
            words += (run[at : at + 2] for at in range(len(run)))
    return words


def separated_words(text: str) -> str:
    """Return a text that has the same words if everything in ASCII except letters and digits
    separates them. Letters in ASCII may be in upper case."""
    folded = text if text.isascii() else _spaced(text)
    # Splitting a text into words takes ten times as long.
    if folded is None or _may_have_long_word(folded):
        return " ".join(words_of(text))
    return folded


def _may_have_long_word(text: str) -> bool:
    """Whether the text has more than `MAX_LENGTH` characters without a space."""
    start = 0
    while len(text) - start > MAX_LENGTH:
        space = text.rfind(" ", start, start + MAX_LENGTH + 1)
        if space < 0:
            return True
        start = space + 1
    return False


def placed_words(text: str) -> Iterator[Word]:
    """Yield the words of a text in order, with their positions."""
    if text.isascii():
        for match in _ASCII_WORDS.finditer(text.lower()):
            start, end = match.span()
            word = match[0][:MAX_LENGTH]
            yield Word(word, start, (*range(start + 1, start + len(word)), end))
        return
    if _is_plain(text):
        yield from _placed_plain_words(text)
        return
    for run in _runs(text):
        if not run[0].is_unspaced:
            counted = run[:MAX_LENGTH]
            ends = (*(character.end for character in counted[:-1]), run[-1].end)
            yield Word("".join(character.text for character in counted), run[0].start, ends)
            continue
        for first, second in itertools.pairwise(run):
            yield Word(first.text + second.text, first.start, (first.end, second.end), is_pair=True)
        last = run[-1]
        yield Word(last.text, last.start, (last.end,), is_pair=True, is_last=True)


def _is_plain(text: str) -> bool:
    """Whether each character of the text is one unit of its script. Most texts without spaces are,
    and their words are found ten times as fast."""
    return _SPECIAL.search(text) is None and _keeps_places(text)


def _placed_plain_words(text: str) -> Iterator[Word]:
    for match in _PLAIN_RUNS.finditer(text.translate(_FOLDING)):
        run, (start, end) = match[0], match.span()
        if _UNSPACED.match(run) is None:
            word = run[:MAX_LENGTH]
            yield Word(word, start, (*range(start + 1, start + len(word)), end))
            continue
        for at in range(start, end - 1):
            word = run[at - start : at - start + 2]
            yield Word(word, at, (at + 1, at + 2), is_pair=True)
        yield Word(run[-1], end - 1, (end,), is_pair=True, is_last=True)


def _runs(text: str) -> Iterator[list[_Character]]:
    """Yield runs of characters: words, or parts in scripts without spaces."""
    run: list[_Character] = []
    is_interrupted = False
    for match in _CHARACTERS.finditer(text):
        start, end = match.span()
        folded = _folded(match[0])
        if folded is None:
            if match[0] in _EMPHASIS and run and run[-1].is_unspaced:
                is_interrupted = True
            elif run:
                yield run
                run, is_interrupted = [], False
            continue
        if not folded:
            if run and not is_interrupted:
                run[-1].end = end
            continue
        for letter in folded:
            is_unspaced = _UNSPACED.match(letter) is not None
            is_symbol = _is_symbol(letter)
            goes_on = run and run[-1].is_unspaced is is_unspaced and not is_symbol
            if run and (not goes_on or (is_interrupted and not is_unspaced)):
                yield run
                run = []
            is_interrupted = False
            run.append(_Character(letter, start, end, is_unspaced))
            if is_symbol:
                yield run
                run = []
    if run:
        yield run


@lru_cache(maxsize=20_000)
def _folded(character: str) -> str | None:
    """Fold the character. Return an empty string if it's ignored, None if it separates words."""
    folded = unicodedata.normalize("NFKD", character.casefold()).casefold()
    folded = unicodedata.normalize("NFKC", _IGNORED.sub("", folded))
    kept = "".join(
        text for text in folded if unicodedata.category(text)[0] in "LMN" or _is_symbol(text)
    )
    return None if folded and not kept else kept


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) == "So"


# Parsing searches

_QUOTES = str.maketrans("“”„‟«»", '""""""')
_PARTS = re.compile(r'"([^"]*)"|([^\s"]+)')


def phrases_of(text: str) -> tuple[Phrase, ...]:
    """Return the phrases of a search. Quoted ones are exact; in others, the last word can be a
    beginning."""
    asked = text.translate(_QUOTES)
    results = [
        _phrase(quoted or bare, is_quoted=bool(quoted)) for quoted, bare in _PARTS.findall(asked)
    ]
    return tuple(dict.fromkeys(phrase for phrase in results if phrase is not None))


def _phrase(text: str, *, is_quoted: bool) -> Phrase | None:
    words = list(placed_words(text))
    if not words:
        return None
    # The text may continue after the search's last character, which is the first of a pair then.
    # Earlier pairs already contain it, if any.
    if words[-1].is_last and len(words) > 1 and not words[-2].is_last and words[-2].is_pair:
        return Phrase(tuple(word.text for word in words[:-1]))
    last = words[-1]
    goes_on = not is_quoted and len(last.text) >= MIN_BEGINNING
    return Phrase(tuple(word.text for word in words), last.is_last or goes_on)


# Matching


def fold_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of each text, separated by spaces, for matching several times."""
    result = ((text, _spaced(text)) for text in texts)
    return tuple(" ".join(words_of(text)) if spaced is None else spaced for text, spaced in result)


def folded_contain(texts: Sequence[str], phrases: Iterable[Phrase]) -> bool:
    """Whether each phrase is in at least one of the texts, which `fold_texts` returned."""
    return all(any(_has(text, phrase) for text in texts) for phrase in phrases)


def _has(text: str, phrase: Phrase) -> bool:
    """Whether the folded text has the phrase."""
    if len(phrase.words) > LONG_PHRASE:
        words = [word[:MAX_LENGTH] for word in text.split()]
        return next(_beginnings(words, phrase), None) is not None
    # A fast test first: most texts don't have all words.
    for word in phrase.words:
        if f" {word}" not in text and not text.startswith(word):
            return False
    return _pattern(phrase).search(text) is not None


def _beginnings(words: Sequence[str], phrase: Phrase) -> Iterator[int]:
    """Yield the indexes of words where the phrase begins, in linear time (Knuth-Morris-Pratt)."""
    *before, last = phrase.words
    borders = [0]
    """For each prefix of the phrase, the length of its longest border."""
    for word in before[1:]:
        length = borders[-1]
        while length and word != before[length]:
            length = borders[length - 1]
        borders.append(length + (word == before[length]))
    matched = 0
    for index, word in enumerate(words):
        while matched and (matched == len(before) or word != before[matched]):
            matched = borders[matched - 1]
        matched += word == before[matched]
        after = index + 1
        if matched == len(before) and after < len(words):
            following = words[after]
            if following.startswith(last) if phrase.is_open else following == last:
                yield after - len(before)


def _spaced(text: str) -> str | None:
    """Return the folded text with spaces between words; None if it has scripts without spaces."""
    folded = text.translate(_FOLDING)
    return folded if text.isascii() or _UNSPACED.search(folded) is None else None


@lru_cache(maxsize=2000)
def _pattern(phrase: Phrase) -> re.Pattern[str]:
    """Return a pattern for the phrase in a folded text; group 1 is the phrase."""
    beyond = {False: "(?![^ ])", True: "[^ ]*"}
    *before, last = (re.escape(word) for word in phrase.words)
    is_long = [len(word) >= MAX_LENGTH for word in phrase.words]
    words = [f"{word}{beyond[cut]}" for word, cut in zip(before, is_long, strict=False)]
    words.append(last + beyond[phrase.is_open or is_long[-1]])
    return re.compile(f"(?<![^ ])(?=({' +'.join(words)}))")


def places(text: str, phrases: Iterable[Phrase]) -> list[tuple[int, int]]:
    """Return the ranges of a text that match the phrases, ascending, with adjacent ones merged."""
    folded = _spaced(text)
    phrases = tuple(phrases)
    is_long = any(len(phrase.words) > LONG_PHRASE for phrase in phrases)
    if folded is not None and _keeps_places(text) and not is_long:
        results = sorted(
            match.span(1) for phrase in phrases for match in _pattern(phrase).finditer(folded)
        )
    else:
        results = _placed(text, phrases)
    merged: list[tuple[int, int]] = []
    for start, end in results:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _keeps_places(text: str) -> bool:
    """Whether folding keeps each character's position in the text."""
    return text.isascii() or all(len(_FOLDING[ord(name)]) == 1 for name in set(text))


def _placed(text: str, phrases: Iterable[Phrase]) -> list[tuple[int, int]]:
    beginnings: list[Phrase] = []
    by_first: dict[str, list[Phrase]] = defaultdict(list)
    long = [phrase for phrase in phrases if len(phrase.words) > LONG_PHRASE]
    for phrase in phrases:
        if len(phrase.words) > LONG_PHRASE:
            continue
        is_beginning = phrase.is_open and len(phrase.words) == 1
        (beginnings if is_beginning else by_first[phrase.words[0]]).append(phrase)
    words = list(placed_words(text))
    # One call rules out most words.
    any_beginning = tuple(phrase.words[0] for phrase in beginnings)
    results = [
        stretch
        for first, word in enumerate(words)
        for phrase in (
            *(beginnings if word.text.startswith(any_beginning) else ()),
            *by_first.get(word.text, ()),
        )
        if (stretch := _stretch(words[first : first + len(phrase.words)], phrase)) is not None
    ]
    texts = [word.text for word in words] if long else []
    for phrase in long:
        for first in _beginnings(texts, phrase):
            last = words[first + len(phrase.words) - 1]
            results.append((words[first].start, _end(last, phrase)))
    return sorted(results)


def _end(last: Word, phrase: Phrase) -> int:
    """Return where the phrase ends, given its last word in the text."""
    return last.ends[len(phrase.words[-1]) - 1] if last.is_pair else last.end


def _stretch(words: Sequence[Word], phrase: Phrase) -> tuple[int, int] | None:
    """Return the range of these words if they match the phrase; otherwise None."""
    if len(words) < len(phrase.words):
        return None
    last, wanted = words[-1], phrase.words[-1]
    if not (last.text.startswith(wanted) if phrase.is_open else last.text == wanted):
        return None
    if any(word.text != asked for word, asked in zip(words[:-1], phrase.words, strict=False)):
        return None
    return words[0].start, _end(last, phrase)
