"""Which characters names may contain, and which names look alike."""

import emoji
import pytest

from tertulia.domain import names
from tertulia.domain.names import is_visible, look_alike
from tertulia.model.errors import Refused

CYRILLIC_A = "\u0430"
CYRILLIC_I = "\u0406"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "ANN"),
        ("team x", "team  x"),
        ("team x", "team\u00a0x"),
        ("Ann", "An\u200bn"),
        ("Ann", "\uff21nn"),
        ("\U0001d400nn", "Ann"),
        ("\u13aann", "Ann"),
        ("pay", f"\u0440{CYRILLIC_A}y"),
        ("Ivan", f"{CYRILLIC_I}van"),
        ("ivan", f"{CYRILLIC_I}van"),
        (f"m{CYRILLIC_A}x", "rnax"),
        ("caf\u00e9", "cafe\u0301"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u30ed", "\u53e3"),
    ],
)
def test_names_that_look_alike_are_equal(one: str, other: str) -> None:
    assert look_alike(one, other)
    assert look_alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "Anna"),
        ("Phase I", "Phase 1"),
        ("modem", "modern"),
        ("Jos\u00e9", "Jose"),
        ("\u00c5ke", "Ake"),
        ("\u041c\u0430\u0440\u0438\u044f", "\u041c\u0430\u0440\u0438\u043d\u0430"),
        ("\u65e5\u672c", "\u65e5\u672c\u8a9e"),
        ("plans", "plan s"),
        ("\U0001f44d", "\U0001f44e"),
    ],
)
def test_other_names_differ(one: str, other: str) -> None:
    assert not look_alike(one, other)


REAL = [
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a non-joiner
    "\u0915\u094d\u200d\u0937",  # Hindi, with a joiner after a virama
    "\u0995\u09cd\u200c\u09b7",  # Bengali, with a non-joiner after one
    "\u0645\u062d\u0645\u062f",
    "\u05d3\u05d5\u05d3",
    "\u0418\u0432\u0430\u043d",
    "\u65e5\u672c\u8a9e \u30c6\u30b9\u30c8",
    "\ud55c\uad6d\uc5b4",
    "\u0e44\u0e17\u0e22",
    "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd",
    "Zo\u00eb O\u2019Brien-\u00c5s",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
]


@pytest.mark.parametrize("name", REAL)
def test_names_in_all_scripts_are_valid(name: str) -> None:
    assert names.full_name(name) == name
    assert names.channel_name(name) == name
    assert names.group_name(name) == name
    names.check_new_topic(name)


def test_every_emoji_may_be_in_a_name() -> None:
    known = [one for one in emoji.EMOJI_DATA if names.is_printable(one)]
    assert len(known) > 4000
    assert not [one for one in known if not is_visible(one)]


HIDDEN = {
    "override": "a\u202eb",
    "isolate": "\u2066a\u2069b",
    "mark": "a\u200fb",
    "zero width": "a\u200bb",
    "joiner": "a\u200db",
    "non-joiner": "a\u200cb",
    "non-joiner at the end": "\u0645\u06cc\u200c",
    "joiner between a symbol and a letter": "\U0001f44d\u200da",
    "soft hyphen": "a\u00adb",
    "no-break": "a\ufeffb",
    "filler": "a\u3164b",
    "braille": "a\u2800b",
    "line": "a\u2028b",
    "tags": "a\U000e0061b",
    "tags of a flag without an end": "\U0001f3f4\U000e0061",
    "tags behind a flag and a letter": "\U0001f3f4b\U000e0061",
}


@pytest.mark.parametrize("name", HIDDEN.values(), ids=HIDDEN.keys())
def test_invisible_characters_are_not_allowed(name: str) -> None:
    for check in (
        names.full_name,
        names.channel_name,
        names.folder_name,
        names.group_name,
        names.realm_name,
        names.check_new_topic,
    ):
        with pytest.raises(Refused, match="invisible"):
            check(name)
    # Existing names can still be looked up.
    assert names.topic_name(name) == name


def test_a_topic_is_not_cut_within_a_grapheme() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for length in range(50, 60):
        names.check_new_topic(names.topic_name("a" * length + family * 3))


def test_a_group_cannot_have_a_role_group_s_name() -> None:
    with pytest.raises(Refused, match="can't begin"):
        names.group_name("\uff52ole:owners")
