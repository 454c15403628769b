"""Fetching messages."""

from collections.abc import Sequence
from typing import Any

import pytest

from tertulia.model.changes import (
    ChannelChanged,
    RealmChanged,
    Subscribed,
    SubscriptionChanged,
    Unsubscribed,
)
from tertulia.service.config import Config
from tests.support import Organization, Person, TestClock, new_organization, row, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")

NEWEST = 10**16


@pytest.fixture
async def house(org: Organization) -> Organization:
    """Channels and messages, for tests that change them."""
    await furnish(org)
    return org


@pytest.fixture(scope="module")
async def kept_house(shared_org: Organization) -> Organization:
    await furnish(shared_org)
    await shared_org.channel("secret", "ann", is_private=True)
    return shared_org


@pytest.fixture
def seen(kept_house: Organization, readonly_org: Organization) -> Organization:
    """The same channels and messages for all read-only tests."""
    return readonly_org


async def furnish(org: Organization) -> None:
    """Create channels and messages. Each message's content begins with its own letter."""
    await org.channel("lounge", "ann", "ben")
    await org.channel("den", "ann", "cleo", is_private=True)
    attic = await org.channel("attic", "cleo")
    noise = await org.channel("noise", "ann", "ben")
    await org.channel("porch", "ben", is_web_public=True)
    ann, ben, cleo, robo = (org[name] for name in ("ann", "ben", "cleo", "robo"))
    await ben.send("lounge", "tea", "a cup of green tea")
    await ann.send("lounge", "Tea", "b @**Ben** https://example.com/", read_by_sender=True)
    await cleo.send("attic", "tea", "c black tea in the attic")
    await cleo.send("den", "", "d @**all** secrets")
    await ben.send("noise", "✔ drums", "e loud")
    await ben.write([ann.user_id], "f psst")
    await cleo.write([ann.user_id, ben.user_id], "g among three")
    await ann.write([ann.user_id], "h note to self", read_by_sender=True)
    await ben.write([robo.user_id], "i between others")
    await ben.send("porch", "view", "j sunny")
    await ben.send("lounge", "coffee", "k @**Ann** coffee-break")
    muted = SubscriptionChanged(
        channel_id=noise, user_id=ann.user_id, property="is_muted", value=True
    )
    await org.do(muted, actor="ann")
    starred = ids("ag")
    (await ann.post("/messages/flags", messages=starred, op="add", flag="starred")).ok
    old = ChannelChanged(channel_id=attic, values={"is_archived": True}, was={"is_archived": False})
    await org.do(old, actor="ann")
    assert org.node.state.last_message_id == 11


def ids(letters: str) -> list[int]:
    """The IDs of the messages that begin with these letters."""
    return [1 + "abcdefghijk".index(letter) for letter in letters]


async def letters(who: Person, narrow: Any, **more: Any) -> str:
    """The letters of the messages in the narrow, in ascending order."""
    page = {"anchor": "newest", "num_before": 100, "num_after": 0, "apply_markdown": False}
    reply = await who.get("/messages", **{**page, **more}, narrow=narrow)
    return "".join(message["content"][0] for message in reply.ok["messages"])


EVERYTHING = "abdefghk"
"""The messages that ann received."""


NARROWS: list[tuple[str, Any, str, str]] = [
    ("channel", "lounge", "abk", "defgh"),
    ("stream", "LOUNGE", "abk", "defgh"),
    ("channel", "attic", "c", EVERYTHING),
    ("channel", "den", "d", "abefghk"),
    ("channels", "public", "abcejk", "dfgh"),
    ("streams", "public", "abcejk", "dfgh"),
    ("channels", "web-public", "j", EVERYTHING),
    ("channels", "archived", "c", EVERYTHING),
    ("topic", "tea", "ab", "defghk"),
    ("subject", "TEA", "ab", "defghk"),
    ("topic", "", "d", "abefghk"),
    ("topic", "general chat", "d", "abefghk"),
    ("topic", "unheard", "", EVERYTHING),
    ("sender", "ben@example.com", "aefk", "bdgh"),
    ("from", "BEN@example.com", "aefk", "bdgh"),
    ("dm", "ben@example.com", "f", "abdeghk"),
    ("pm-with", "ben@example.com,cleo@example.com", "g", "abdefhk"),
    ("pm_with", "ben@example.com", "f", "abdeghk"),
    ("dm", "ann@example.com", "h", "abdefgk"),
    ("dm", "gus@example.com", "", EVERYTHING),
    ("dm-including", "ben@example.com", "fg", "abdehk"),
    ("dm-including", "ann@example.com", "fgh", "abdek"),
    ("dm-including", "robo-bot@example.com", "", EVERYTHING),
    ("group-pm-with", "ben@example.com", "g", "abdefhk"),
    ("is", "dm", "fgh", "abdek"),
    ("is", "private", "fgh", "abdek"),
    ("is", "starred", "ag", "bdefhk"),
    ("is", "unread", "adefgk", "bh"),
    ("is", "mentioned", "dk", "abefgh"),
    ("is", "alerted", "", EVERYTHING),
    ("is", "resolved", "e", "abdfghk"),
    ("is", "muted", "e", "abdfghk"),
    ("is", "followed", "", EVERYTHING),
    ("has", "link", "b", "adefghk"),
    ("has", "links", "b", "adefghk"),
    ("has", "image", "", EVERYTHING),
    ("has", "attachment", "", EVERYTHING),
    ("has", "reaction", "", EVERYTHING),
    ("in", "all", EVERYTHING, EVERYTHING),
    ("in", "home", "abdfghk", "abdfghk"),
    ("near", 1, EVERYTHING, EVERYTHING),
    ("near", "1", EVERYTHING, EVERYTHING),
    ("search", "tea", "ab", "defghk"),
    ("search", "TEA cup", "a", "bdefghk"),
    ("search", '"green tea"', "a", "bdefghk"),
    ("search", '"tea green"', "", EVERYTHING),
    ("search", "coffee-break", "k", "abdefgh"),
    ("search", "seldom", "", EVERYTHING),
    ("search", "!!!", "", EVERYTHING),
    ("search", "' OR 1=1 -- \" * ( ) NEAR : & | ! <->", "", EVERYTHING),
    ("mentions", "ben@example.com", "b", "adefghk"),
    ("mentions", "ann@example.com", "k", "abdefgh"),
]
"""Operator and operand; what ann finds with the term, and with its negation."""


async def test_a_narrow_and_its_negation_find_the_expected_messages(seen: Organization) -> None:
    ann = seen["ann"]
    for operator, operand, positive, negative in NARROWS:
        with row(operator, operand):
            term = {"operator": operator, "operand": operand}
            assert await letters(ann, [term]) == positive
            assert await letters(ann, [{**term, "negated": True}]) == negative
            if isinstance(operand, str):
                assert await letters(ann, [[operator, operand]]) == positive


async def test_ids_and_names_find_the_same(seen: Organization) -> None:
    ann, ben, cleo = (seen[name].user_id for name in ("ann", "ben", "cleo"))
    lounge = seen.node.state.channel_named("lounge")
    assert lounge
    (tea,) = ids("c")
    table: list[tuple[str, Any, str]] = [
        ("channel", lounge.id, "abk"),
        ("channel", str(lounge.id), "abk"),
        ("sender", ben, "aefk"),
        ("dm", ben, "f"),
        ("dm", [ben], "f"),
        ("dm", [ben, cleo, ann, ben], "g"),
        ("dm", [ann], "h"),
        ("dm-including", ben, "fg"),
        ("group-pm-with", ben, "g"),
        ("mentions", ben, "b"),
        ("id", tea, "c"),
        ("id", str(tea), "c"),
        ("id", 999_999, ""),
        ("id", 0, ""),
    ]
    for operator, operand, found in table:
        terms = [{"operator": operator, "operand": operand}]
        assert await letters(seen["ann"], terms) == found, (operator, operand)


async def test_all_terms_must_match(seen: Organization) -> None:
    ann = seen["ann"]
    table: list[tuple[Sequence[Any], str]] = [
        ([], EVERYTHING),
        ([["channel", "lounge"], ["topic", "tea"]], "ab"),
        ([["channel", "lounge"], ["topic", "tea"], ["sender", "ben@example.com"]], "a"),
        ([["channel", "lounge"], {"operator": "topic", "operand": "tea", "negated": True}], "k"),
        ([["channel", "lounge"], ["channel", "den"]], ""),
        ([["channel", "lounge"], ["is", "dm"]], ""),
        ([["channels", "public"], ["search", "tea"]], "abc"),
        ([["search", "tea"], ["search", "green"]], "a"),
        ([["is", "unread"], ["is", "mentioned"]], "dk"),
    ]
    for terms, found in table:
        assert await letters(ann, terms) == found, terms


async def test_a_conversation_is_found_by_one_of_its_messages(seen: Organization) -> None:
    ann = seen["ann"]
    for letter, found in (("a", "ab"), ("b", "ab"), ("f", "f"), ("g", "g"), ("c", "c")):
        (message_id,) = ids(letter)
        assert await letters(ann, [{"operator": "with", "operand": message_id}]) == found
        assert await letters(ann, [["channel", "noise"], ["with", str(message_id)]]) == found
    (hidden,) = ids("i")
    for missing in (hidden, 999_999, -1):
        term = {"operator": "with", "operand": missing}
        reply = await ann.get("/messages", anchor=0, num_before=0, num_after=9, narrow=[term])
        reply.refused("BAD_NARROW")
        assert await letters(ann, [["channel", "noise"], term]) == "e"
    twice = [{"operator": "with", "operand": 1}] * 2
    negated = [{"operator": "with", "operand": 1, "negated": True}]
    for terms in (twice, negated):
        reply = await ann.get("/messages", anchor=0, num_before=0, num_after=9, narrow=terms)
        reply.refused("BAD_NARROW")


SENSELESS = [
    ("{", "REQUEST_VARIABLE_INVALID"),
    ("lounge", "REQUEST_VARIABLE_INVALID"),
    ("{}", "BAD_NARROW"),
    ("1", "BAD_NARROW"),
    ("[1]", "BAD_NARROW"),
    ("[[]]", "BAD_NARROW"),
    ('[["channel"]]', "BAD_NARROW"),
    ('[["channel", "lounge", "x"]]', "BAD_NARROW"),
    ('[["channel", 1]]', "BAD_NARROW"),
    ('[{"operator": "channel"}]', "BAD_NARROW"),
    ('[{"operand": "lounge"}]', "BAD_NARROW"),
    ('[{"operator": "channel", "operand": null}]', "BAD_NARROW"),
    ('[{"operator": "channel", "operand": true}]', "BAD_NARROW"),
    ('[{"operator": "channel", "operand": {}}]', "BAD_NARROW"),
    ('[{"operator": "channel", "operand": "lounge", "negated": 1}]', "BAD_NARROW"),
    ('[{"operator": "unheard", "operand": "x"}]', "BAD_NARROW"),
    ('[["channel", "nowhere"]]', "BAD_NARROW"),
    ('[["channel", "secret"]]', "BAD_NARROW"),
    ('[{"operator": "channel", "operand": 999999}]', "BAD_NARROW"),
    ('[["channels", "odd"]]', "BAD_NARROW"),
    ('[["sender", "nobody@example.com"]]', "BAD_NARROW"),
    ('[["sender", "me"]]', "BAD_NARROW"),
    ('[["dm", ""]]', "BAD_NARROW"),
    ('[{"operator": "dm", "operand": []}]', "BAD_NARROW"),
    ('[{"operator": "dm", "operand": [1, "a@b"]}]', "BAD_NARROW"),
    ('[{"operator": "dm", "operand": ["a\\u0000"]}]', "BAD_NARROW"),
    ('[["is", "odd"]]', "BAD_NARROW"),
    ('[["has", "odd"]]', "BAD_NARROW"),
    ('[["in", "odd"]]', "BAD_NARROW"),
    ('[["near", "odd"]]', "BAD_NARROW"),
    ('[["id", "odd"]]', "BAD_NARROW"),
    ('[["id", "99999999999999999999"]]', "BAD_NARROW"),
    ('[{"operator": "id", "operand": 99999999999999999999}]', "BAD_NARROW"),
    ('[["with", "odd"]]', "BAD_NARROW"),
    ('[["search", ""]]', "BAD_NARROW"),
    ('[["search", "a\\u0000b"]]', "BAD_NARROW"),
    ('[["topic", "a\\u0000b"]]', "BAD_NARROW"),
    ("[" + ",".join(['["is", "dm"]'] * 101) + "]", "BAD_NARROW"),
    ("[" + ",".join(f'["search", "w{n} v"]' for n in range(51)) + "]", "BAD_NARROW"),
    ("[" * 20_000, "REQUEST_VARIABLE_INVALID"),
]
"""Narrows and their error codes."""


async def test_an_invalid_narrow_is_refused(seen: Organization) -> None:
    page = {"anchor": "newest", "num_before": 1, "num_after": 0}
    for narrow, code in SENSELESS:
        with row(narrow):
            body = (await seen["ben"].get("/messages", **page, narrow=narrow)).refused(code)
            if code == "BAD_NARROW":
                assert body["desc"]


async def test_null_is_accepted_as_no_narrow(seen: Organization) -> None:
    assert await letters(seen["ann"], "null") == EVERYTHING


# Pages


PAGES: tuple[tuple[str | int, int, int, Sequence[int], int, bool, bool, bool], ...] = (
    ("newest", 3, 0, [7, 8, 9], NEWEST, False, False, True),
    ("newest", 3, 3, [7, 8, 9], NEWEST, False, False, True),
    ("newest", 10, 0, range(10), NEWEST, False, True, True),
    (str(10**16), 2, 0, [8, 9], NEWEST, False, False, True),
    ("9" * 5000, 2, 0, [8, 9], NEWEST, False, False, True),
    ("oldest", 0, 3, [0, 1, 2], 0, False, True, False),
    ("oldest", 0, 10, range(10), 0, False, True, True),
    ("oldest", 0, 5000, range(10), 0, False, True, True),
    ("0", 0, 2, [0, 1], 0, False, True, False),
    ("-7", 0, 2, [0, 1], 0, False, True, False),
    (4, 2, 2, [2, 3, 4, 5, 6], 4, True, False, False),
    (4, 0, 0, [4], 4, True, False, False),
    (4, 9, 0, [0, 1, 2, 3, 4], 4, True, True, False),
    (4, 0, 9, [4, 5, 6, 7, 8, 9], 4, True, False, True),
    (0, 1, 0, [0], 0, True, True, False),
    (9, 0, 1, [9], 9, True, False, True),
    (9, 1, 1, [8, 9], 9, True, False, True),
)
"""Anchor, messages before and after, the found messages, the anchor in the response, and whether
that, the oldest, and the newest message were found."""


async def test_a_page_is_around_its_anchor(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = [await org["ann"].send("lounge", "t", str(n)) for n in range(10)]
    for anchor, before, after, shown, resolved, *flags in PAGES:
        at = sent[anchor] if isinstance(anchor, int) else anchor
        with row(anchor, before, after):
            asked = {"anchor": at, "num_before": before, "num_after": after}
            page = (await org["ann"].get("/messages", **asked)).ok
            assert [message["id"] for message in page["messages"]] == [sent[n] for n in shown]
            assert page["anchor"] == (at if isinstance(anchor, int) else resolved)
            names = ("found_anchor", "found_oldest", "found_newest")
            assert [page[name] for name in names] == flags
            assert page["history_limited"] is False
    # The anchor can be left out.
    ann = org["ann"]
    for before, after, shown in ((2, 0, sent[2:4]), (0, 2, sent[5:7])):
        page = (
            await ann.get(
                "/messages",
                anchor=sent[4],
                num_before=before,
                num_after=after,
                include_anchor=False,
            )
        ).ok
        assert [message["id"] for message in page["messages"]] == shown
        assert page["found_anchor"] is False
    both = {"anchor": sent[4], "num_before": 1, "num_after": 1, "include_anchor": False}
    (await ann.get("/messages", **both)).refused()


async def test_the_first_unread_message_is_an_anchor(house: Organization) -> None:
    ann = house["ann"]
    page = {"num_before": 0, "num_after": 0}

    async def first(**more: Any) -> int:
        anchor: int = (await ann.get("/messages", **page, **more)).ok["anchor"]
        return anchor

    a, d, e, k = ids("adek")
    assert await first(anchor="first_unread") == a
    assert await first(use_first_unread_anchor=True) == a
    assert await first(anchor="first_unread", narrow=[["is", "mentioned"]]) == d
    (await ann.post("/messages/flags", messages=ids("adfg"), op="add", flag="read")).ok
    # Muted messages don't count, unless the narrow is about them.
    assert await first(anchor="first_unread") == k
    assert await first(anchor="first_unread", narrow=[["channel", "noise"]]) == e
    assert await first(anchor="first_unread", narrow=[["channel", "den"]]) == NEWEST


async def test_a_date_is_an_anchor(config: Config) -> None:
    clock = TestClock(stopped_at=1_700_000_000)
    async with new_organization(config, clock=clock) as org:
        await org.channel("lounge", "ann")
        sent = []
        for seconds in (0, 100, 200):
            clock.ahead = seconds
            sent.append(await org["ann"].send("lounge", "t", "x"))
        table = [
            ("2023-11-14T22:13:20Z", sent[0]),
            ("2023-11-14T22:13:21+00:00", sent[1]),
            ("2023-11-14T22:14:00", sent[1]),
            ("2023-11-15T00:15:00+02:00", sent[1]),
            ("2023-11-14", sent[0]),
            ("2023-11-15", NEWEST),
            ("9999-12-31T23:59:59Z", NEWEST),
            ("0001-01-01", sent[0]),
        ]
        page = {"anchor": "date", "num_before": 0, "num_after": 1}
        for date, anchor in table:
            found = (await org["ann"].get("/messages", **page, anchor_date=date)).ok
            assert found["anchor"] == anchor, date
        for junk in (None, "", "yesterday", "2023-13-01", "1700000000", "20231114T221320.5.5"):
            (await org["ann"].get("/messages", **page, anchor_date=junk)).refused()


@rows(
    ("changed", "code"),
    [
        ({"anchor": None}, "BAD_REQUEST"),
        ({"anchor": ""}, "BAD_REQUEST"),
        ({"anchor": "somewhere"}, "BAD_REQUEST"),
        ({"anchor": "1.5"}, "BAD_REQUEST"),
        ({"anchor": "1_000"}, "BAD_REQUEST"),
        ({"anchor": "٣"}, "BAD_REQUEST"),
        ({"anchor": "1\n"}, "BAD_REQUEST"),
        ({"anchor": "a\0"}, "REQUEST_VARIABLE_INVALID"),
        ({"num_before": None}, "BAD_REQUEST"),
        ({"num_after": None}, "BAD_REQUEST"),
        ({"num_before": -1}, "REQUEST_VARIABLE_INVALID"),
        ({"num_after": "x"}, "REQUEST_VARIABLE_INVALID"),
        ({"num_before": 5000, "num_after": 1}, "BAD_REQUEST"),
        ({"num_before": 2**31}, "BAD_REQUEST"),
        ({"num_before": 2**63}, "REQUEST_VARIABLE_INVALID"),
        ({"message_ids": "1"}, "REQUEST_VARIABLE_INVALID"),
        ({"message_ids": ["1"]}, "REQUEST_VARIABLE_INVALID"),
        ({"message_ids": [2**63]}, "REQUEST_VARIABLE_INVALID"),
        ({"apply_markdown": "True"}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_an_invalid_page_is_refused(
    sqlite_org: Organization, changed: dict[str, Any], code: str
) -> None:
    asked = {"anchor": "newest", "num_before": 1, "num_after": 1, **changed}
    (await sqlite_org["ann"].get("/messages", **asked)).refused(code)


@rows(
    "page",
    [
        {"anchor": "newest"},
        {"anchor_date": "2026-01-01"},
        {"num_before": 0},
        {"num_after": 0},
        {"use_first_unread_anchor": True},
        {"include_anchor": False},
    ],
)
async def test_messages_by_id_are_not_a_page(
    sqlite_org: Organization, page: dict[str, Any]
) -> None:
    (await sqlite_org["ann"].get("/messages", message_ids=[1], **page)).refused("BAD_REQUEST")


async def test_messages_can_be_fetched_by_id(seen: Organization) -> None:
    ann = seen["ann"]
    wanted = ids("kacai")
    page = (await ann.get("/messages", message_ids=[*wanted, 999_999, 0, -1])).ok
    assert [message["content"][3] for message in page["messages"]] == ["a", "c", "k"]
    assert "anchor" not in page
    assert not any(page[f"found_{end}"] for end in ("anchor", "oldest", "newest"))
    page = (await ann.get("/messages", message_ids=wanted, narrow=[["topic", "tea"]])).ok
    assert [message["content"][3] for message in page["messages"]] == ["a", "c"]
    assert (await ann.get("/messages", message_ids=[])).ok["messages"] == []
    (await ann.get("/messages", message_ids=[1] * 5001)).refused()


# Access


async def test_people_find_only_messages_they_can_read(seen: Organization) -> None:
    assert await letters(seen["ben"], []) == "abefgijk"
    assert await letters(seen["cleo"], []) == "cdg"
    assert await letters(seen["gus"], []) == ""
    assert await letters(seen["robo"], []) == "i"
    for term in (["channel", "lounge"], ["channel", "den"]):
        reply = await seen["gus"].get(
            "/messages", anchor=0, num_before=0, num_after=9, narrow=[term]
        )
        reply.refused("BAD_NARROW")
    assert await letters(seen["gus"], [["channel", "porch"]]) == "j"


async def test_a_protected_history_starts_with_the_subscription(org: Organization) -> None:
    den = await org.channel("den", "ann", is_private=True, history_public=False)
    early = await org["ann"].send("den", "t", "a early")
    ben = org["ben"]
    joined = Subscribed(
        channel_id=den, colors={ben.user_id: "#76ce90"}, after=early, gained=(ben.user_id,)
    )
    await org.do(joined, actor="ann")
    await org["ann"].send("den", "t", "b later")
    assert await letters(ben, [["channel", "den"]]) == "b"
    assert await letters(ben, []) == "b"
    assert await letters(ben, [["id", str(early)]]) == ""
    unknown = (await ben.get("/messages/999999")).refused()
    assert (await ben.get(f"/messages/{early}")).refused() == unknown
    assert await letters(org["ann"], [["channel", "den"]]) == "ab"
    left = Unsubscribed(
        channel_id=den,
        user_ids=(ben.user_id,),
        until=org.node.state.last_message_id,
        lost=(ben.user_id,),
    )
    await org.do(left, actor="ann")
    await org["ann"].send("den", "t", "c behind the door")
    assert await letters(ben, []) == ""
    reply = await ben.get(
        "/messages", anchor=0, num_before=0, num_after=9, narrow=[["channel", "den"]]
    )
    reply.refused("BAD_NARROW")


async def test_a_star_does_not_keep_access_to_a_private_channel(org: Organization) -> None:
    """The star isn't lost, either: someone who returns finds it again."""
    attic = await org.channel("attic", "ann", "cleo")
    old = await org["ann"].send("attic", "t", "a old")
    ben = org["ben"]
    (await ben.post("/messages/flags", messages=[old], op="add", flag="starred")).ok
    assert await letters(ben, []) == await letters(ben, [["is", "starred"]]) == "a"
    for is_private, found in ((True, ""), (False, "a")):
        (await org["ann"].patch(f"/streams/{attic}", is_private=is_private)).ok
        assert await letters(ben, []) == found
        assert await letters(ben, [["is", "starred"]]) == found
        assert await letters(ben, [["id", str(old)]]) == found


async def test_a_spectator_sees_only_web_public_channels(house: Organization) -> None:
    nobody = house.nobody
    (porch, lounge) = ids("ja")
    web = [{"operator": "channels", "operand": "web-public"}]
    page = {"anchor": "newest", "num_before": 9, "num_after": 0}
    (await nobody.get("/messages", **page, narrow=web)).refused("UNAUTHORIZED", 401)
    (await nobody.get(f"/messages/{porch}")).refused("UNAUTHORIZED", 401)
    await house.do(RealmChanged(values={"enable_spectator_access": True}), actor="ann")
    assert await letters(nobody, web) == "j"
    assert await letters(nobody, [*web, ["topic", "view"]]) == "j"
    (await nobody.get("/messages", **page)).refused("UNAUTHORIZED", 401)
    negated = [{**web[0], "negated": True}]
    (await nobody.get("/messages", **page, narrow=negated)).refused("UNAUTHORIZED", 401)
    (await nobody.get("/messages", **page, narrow=[*web, ["channel", "lounge"]])).refused(
        "BAD_NARROW"
    )
    shown = (await nobody.get(f"/messages/{porch}")).ok["message"]
    assert shown["flags"] == ["read"]
    hidden = (await nobody.get(f"/messages/{lounge}")).refused()
    assert hidden == (await nobody.get("/messages/999999")).refused()
    # Web-public messages can be searched. Personal filters need an account.
    assert await letters(nobody, [*web, ["search", "view"]]) == "j"
    assert await letters(nobody, [*web, ["search", "tea"]]) == ""
    assert await letters(nobody, [*web, ["is", "resolved"]]) == ""
    for own in ("is:starred", "is:unread", "is:mentioned", "in:home", "dm:1", "dm-including:1"):
        for is_negated in (False, True):
            operator, operand = own.split(":")
            term = {"operator": operator, "operand": operand, "negated": is_negated}
            refused = await nobody.get("/messages", **page, narrow=[*web, term])
            assert operator in refused.refused("UNAUTHORIZED", 401)["msg"]


async def test_an_inaccessible_message_looks_like_an_unknown_one(seen: Organization) -> None:
    (hidden, den) = ids("id")
    unknown = (await seen["cleo"].get("/messages/999999")).refused()
    assert (await seen["cleo"].get(f"/messages/{hidden}")).refused() == unknown
    assert (await seen["ben"].get(f"/messages/{den}")).refused() == unknown
    assert (await seen["gus"].get("/messages/0")).refused() == unknown


# Format


async def test_search_matches_are_highlighted(seen: Organization) -> None:
    page = {"anchor": "newest", "num_before": 9, "num_after": 0}
    found = (await seen["ann"].get("/messages", **page, narrow=[["search", "tea"]])).ok["messages"]
    mark = '<span class="highlight">{}</span>'
    assert [message["match_subject"] for message in found] == [
        mark.format("tea"),
        mark.format("Tea"),
    ]
    assert found[0]["match_content"] == f"<p>a cup of green {mark.format('tea')}</p>"
    plain = (await seen["ann"].get("/messages", **page)).ok["messages"]
    assert not any("match_content" in message for message in plain)


async def test_the_client_chooses_markdown_or_html(seen: Organization) -> None:
    (a,) = ids("a")
    html = (await seen["ann"].get(f"/messages/{a}")).ok
    source = (await seen["ann"].get(f"/messages/{a}", apply_markdown=False)).ok
    assert html["message"]["content"] == "<p>a cup of green tea</p>"
    assert html["message"]["content_type"] == "text/html"
    assert source["message"]["content"] == html["raw_content"] == "a cup of green tea"
    assert source["message"]["content_type"] == "text/x-markdown"
    assert html["message"]["flags"] == ["starred"]


async def test_a_computable_avatar_is_left_to_clients(seen: Organization) -> None:
    (a,) = ids("a")
    for client_gravatar in (True, False):
        page = (
            await seen["ann"].get("/messages", message_ids=[a], client_gravatar=client_gravatar)
        ).ok
        (message,) = page["messages"]
        assert (message["avatar_url"] is None) is client_gravatar
