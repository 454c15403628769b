"""Topic visibility policies: muted, unmuted, and followed."""

from typing import Any

import msgspec
import pytest

from tertulia.domain.channels.topics import MAX_USER_TOPICS
from tertulia.model.changes import RealmChanged, SubscriptionChanged, Unsubscribed, UserCreated
from tertulia.model.users import PersonalSettings, Role, User
from tertulia.service.config import Config
from tests.support import Organization, Person, new_organization, open_organization, row

TOPICS = "/user_topics"
NONE, MUTED, UNMUTED, FOLLOWED = 0, 1, 2, 3
MODERN = {"empty_topic_name": True, "archived_channels": True}


async def own(who: Person) -> list[tuple[int, str, int]]:
    """Someone's topics in POST /register."""
    data = (await who.register(fetch_event_types=["user_topic"], client_capabilities=MODERN)).data
    return [(t["stream_id"], t["topic_name"], t["visibility_policy"]) for t in data["user_topics"]]


async def letters(who: Person, narrow: Any, **more: Any) -> str:
    """The messages in the narrow, by their first letters."""
    page = {"anchor": "newest", "num_before": 100, "num_after": 0, "apply_markdown": False}
    reply = await who.get("/messages", **{**page, **more}, narrow=narrow)
    return "".join(message["content"][0] for message in reply.ok["messages"])


@pytest.mark.parametrize("policy", [MUTED, UNMUTED, FOLLOWED])
async def test_a_topic_policy_is_set_and_reset(org: Organization, policy: int) -> None:
    channel = await org.channel("lounge", "ben")
    ben, cleo = await org["ben"].register(), await org["cleo"].register()
    for wanted in (policy, policy, NONE, NONE):
        reply = await org["ben"].post(
            TOPICS, stream_id=channel, topic=" Tea ", visibility_policy=wanted
        )
        assert reply.ok
        shown = [(channel, "Tea", wanted)] if wanted else []
        assert await own(org["ben"]) == shown
    expected = [(channel, "Tea", policy), (channel, "Tea", NONE)]
    events = [event for event in await ben.events() if event["type"] == "user_topic"]
    assert [(e["stream_id"], e["topic_name"], e["visibility_policy"]) for e in events] == expected
    assert all(e["last_updated"] == pytest.approx(org.node.clock(), abs=600) for e in events)
    assert await cleo.events() == []
    assert await own(org["cleo"]) == []


async def test_a_topic_has_one_policy_however_it_is_spelled(org: Organization) -> None:
    channel = await org.channel("lounge", "ben")
    for topic, policy in (("tea", MUTED), ("TEA", FOLLOWED)):
        reply = await org["ben"].post(
            TOPICS, stream_id=channel, topic=topic, visibility_policy=policy
        )
        assert reply.ok
    assert await own(org["ben"]) == [(channel, "TEA", FOLLOWED)]


async def test_general_chat_is_a_topic_under_all_its_names(org: Organization) -> None:
    channel = await org.channel("lounge", "ben")
    modern = await org["ben"].register(client_capabilities={"empty_topic_name": True})
    of_old = await org["ben"].register()
    for topic in ["", "(no topic)", "general chat", "  "]:
        with row(topic):
            about = {"stream_id": channel, "topic": topic}
            assert (await org["ben"].post(TOPICS, **about, visibility_policy=FOLLOWED)).ok
            assert [e["topic_name"] for e in await modern.events()] == [""]
            assert [e["topic_name"] for e in await of_old.events()] == ["general chat"]
            (shown,) = (await org["ben"].register()).data["user_topics"]
            assert shown["topic_name"] == "general chat"
            assert (await org["ben"].post(TOPICS, **about, visibility_policy=NONE)).ok
            for listener in (modern, of_old):
                assert len(await listener.events()) == 1


@pytest.fixture(scope="module")
async def lounge(shared_org: Organization) -> int:
    """A channel of ben's."""
    return await shared_org.channel("lounge", "ben")


@pytest.mark.parametrize(
    "wrong",
    [
        {"stream_id": 999},
        {"stream_id": -1},
        {"stream_id": "lounge"},
        {"topic": "x" * 61},
        {"topic": "a\u0007"},
        {"topic": "a\0"},
        {"visibility_policy": 4},
        {"visibility_policy": -1},
        {"visibility_policy": "muted"},
        {"stream_id": None},
        {"topic": None},
        {"visibility_policy": None},
    ],
    ids=str,
)
async def test_an_invalid_policy_is_refused(
    lounge: int, readonly_org: Organization, wrong: dict[str, Any]
) -> None:
    right = {"stream_id": lounge, "topic": "tea", "visibility_policy": MUTED}
    reply = await readonly_org["ben"].post(TOPICS, **{**right, **wrong})
    assert reply.status == 400, reply.body
    assert await own(readonly_org["ben"]) == []


async def test_an_inaccessible_channel_looks_like_an_unknown_one(org: Organization) -> None:
    channel = await org.channel("vault", "ben", is_private=True)
    public = await org.channel("lounge")
    wanted = {"topic": "tea", "visibility_policy": MUTED}
    unknown = (await org["cleo"].post(TOPICS, stream_id=999, **wanted)).refused()
    assert (await org["cleo"].post(TOPICS, stream_id=channel, **wanted)).body == unknown
    assert (await org["gus"].post(TOPICS, stream_id=public, **wanted)).body == unknown
    # A subscription isn't needed.
    assert (await org["cleo"].post(TOPICS, stream_id=public, **wanted)).ok


async def test_a_policy_can_be_reset_after_losing_access(
    org: Organization,
) -> None:
    channel = await org.channel("vault", "ben", "ann", is_private=True)
    wanted = {"stream_id": channel, "topic": "tea"}
    assert (await org["ben"].post(TOPICS, **wanted, visibility_policy=MUTED)).ok
    await org.do(
        Unsubscribed(
            channel_id=channel,
            user_ids=(org["ben"].user_id,),
            until=0,
            lost=(org["ben"].user_id,),
            name="vault",
        )
    )
    (await org["ben"].post(TOPICS, **wanted, visibility_policy=FOLLOWED)).refused()
    assert (await org["ben"].post(TOPICS, **wanted, visibility_policy=NONE)).ok
    (await org["ben"].post(TOPICS, **wanted, visibility_policy=NONE)).refused()


async def test_the_number_of_policies_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_USER_TOPICS == 20_000
    monkeypatch.setattr("tertulia.domain.channels.topics.MAX_USER_TOPICS", 1)
    channel = await org.channel("lounge", "ben")
    wanted = {"stream_id": channel, "visibility_policy": MUTED}
    assert (await org["ben"].post(TOPICS, **wanted, topic="a")).ok
    (await org["ben"].post(TOPICS, **wanted, topic="b")).refused()
    assert (
        await org["ben"].post(TOPICS, stream_id=channel, topic="a", visibility_policy=FOLLOWED)
    ).ok


# Legacy


async def test_muted_topics_have_legacy_events_for_clients_without_user_topics(
    org: Organization,
) -> None:
    channel = await org.channel("lounge", "ben")
    ben = org["ben"]
    every = await ben.register()
    of_old = await ben.register(event_types=["muted_topics"])
    modern = await ben.register(event_types=["muted_topics", "user_topic"])
    assert of_old.data["muted_topics"] == []
    assert "muted_topics" not in modern.data
    assert (await ben.post(TOPICS, stream_id=channel, topic="tea", visibility_policy=MUTED)).ok
    kinds = [[e["type"] for e in await queue.events()] for queue in (every, modern)]
    assert kinds == [["user_topic", "muted_topics"], ["user_topic"]]
    (event,) = await of_old.events()
    ((name, topic, since),) = event["muted_topics"]
    assert (name, topic) == ("lounge", "tea")
    assert since == pytest.approx(org.node.clock(), abs=600)
    assert (await ben.register(event_types=["muted_topics"])).data["muted_topics"] == [
        [name, topic, since]
    ]


@pytest.mark.parametrize("by_name", [True, False])
async def test_the_legacy_endpoint_mutes_and_unmutes(org: Organization, by_name: bool) -> None:
    channel = await org.channel("lounge", "ben")
    which = {"stream": "Lounge"} if by_name else {"stream_id": channel}
    path = "/users/me/subscriptions/muted_topics"
    assert (await org["ben"].patch(path, **which, topic="tea", op="add")).ok
    assert await own(org["ben"]) == [(channel, "tea", MUTED)]
    assert (await org["ben"].patch(path, **which, topic="tea", op="remove")).ok
    assert (await org["ben"].patch(path, **which, topic="tea", op="remove")).ok
    assert await own(org["ben"]) == []
    # A followed topic isn't muted, and stays followed.
    assert (
        await org["ben"].post(TOPICS, stream_id=channel, topic="tea", visibility_policy=FOLLOWED)
    ).ok
    assert (await org["ben"].patch(path, **which, topic="tea", op="remove")).ok
    assert await own(org["ben"]) == [(channel, "tea", FOLLOWED)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": None},
        {"stream_id": 1},
        {"stream": "nowhere"},
        {"op": "toggle"},
        {"op": None},
        {"topic": None},
    ],
    ids=str,
)
async def test_the_legacy_endpoint_refuses_invalid_requests(
    lounge: int, readonly_org: Organization, wrong: dict[str, Any]
) -> None:
    right = {"stream": "lounge", "topic": "tea", "op": "add"}
    reply = await readonly_org["ben"].patch(
        "/users/me/subscriptions/muted_topics", **{**right, **wrong}
    )
    assert reply.status == 400, reply.body


# Effects


async def stage(org: Organization) -> tuple[int, int]:
    """Ben mutes `noisy` except for its topic `news`, mutes the topic `tea` of `lounge`, and follows
    its topic `cake`."""
    lounge = await org.channel("lounge", "ann", "ben")
    noisy = await org.channel("noisy", "ann", "ben")
    await org.do(
        SubscriptionChanged(
            channel_id=noisy, user_id=org["ben"].user_id, property="is_muted", value=True
        )
    )
    for letter, channel, topic in (
        ("a", noisy, "chatter"),
        ("b", lounge, "tea"),
        ("c", noisy, "News"),
        ("d", lounge, "cake"),
        ("e", lounge, "plans"),
    ):
        await org["ann"].send(channel, topic, letter)
    await org["ann"].write([org["ben"].user_id], "f")
    for channel, topic, policy in (
        (noisy, "news", UNMUTED),
        (lounge, "TEA", MUTED),
        (lounge, "cake", FOLLOWED),
    ):
        assert (
            await org["ben"].post(TOPICS, stream_id=channel, topic=topic, visibility_policy=policy)
        ).ok
    return lounge, noisy


NARROWS: tuple[tuple[list[Any], str], ...] = (
    ([["is", "muted"]], "ab"),
    ([{"operator": "is", "operand": "muted", "negated": True}], "cdef"),
    ([["in", "home"]], "cdef"),
    ([["is", "followed"]], "d"),
    ([{"operator": "is", "operand": "followed", "negated": True}], "abcef"),
    ([["is", "muted"], ["channel", "lounge"]], "b"),
)


async def test_narrows_respect_muted_and_followed_topics(org: Organization) -> None:
    await stage(org)
    for narrow, expected in NARROWS:
        assert await letters(org["ben"], narrow) == expected, narrow


FIRST_UNREAD: list[tuple[Any, str]] = [
    ([], "c"),
    ([["channel", "lounge"]], "d"),
    ([["channel", "noisy"]], "a"),
    ([["channel", "lounge"], ["topic", "tea"]], "b"),
]


async def test_the_first_unread_message_is_not_in_a_muted_topic(org: Organization) -> None:
    await stage(org)
    for narrow, expected in FIRST_UNREAD:
        with row(narrow, expected):
            found = await letters(
                org["ben"], narrow, anchor="first_unread", num_before=0, num_after=0
            )
            assert found == expected


async def test_muted_messages_do_not_count_as_unread(org: Organization) -> None:
    await stage(org)
    unread = (await org["ben"].register()).data["unread_msgs"]
    assert unread["count"] == 4
    assert len(unread["streams"]) == 5


async def test_a_policy_survives_archiving_and_renaming(
    org: Organization,
) -> None:
    channel = await org.channel("lounge", "ben")
    ben = org["ben"]
    assert (await ben.post(TOPICS, stream_id=channel, topic="tea", visibility_policy=MUTED)).ok
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="salon")).ok
    assert (await ben.register()).data["muted_topics"][0][0] == "salon"
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    assert await own(ben) == [(channel, "tea", MUTED)]


async def test_spectators_have_no_policies(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    data = (await org.nobody.post("/register", fetch_event_types=["user_topic"])).ok
    assert data["user_topics"] == []


async def test_policies_survive_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        channel = await org.channel("lounge", "ann")
        wanted = {"stream_id": channel, "visibility_policy": MUTED}
        assert (await org["ann"].post(TOPICS, **wanted, topic="tea")).ok
        assert (await org["ann"].post(TOPICS, **wanted, topic="cake")).ok
        assert (
            await org["ann"].post(TOPICS, stream_id=channel, topic="tea", visibility_policy=NONE)
        ).ok
    async with open_organization(config) as org:
        assert await own(org["ann"]) == [(channel, "cake", MUTED)]


# Participation


async def with_settings(org: Organization, name: str, **settings: Any) -> Person:
    """A new account with these personal settings."""
    user = User(
        id=org.node.state.users.next_id(),
        address=f"{name}@example.com",
        full_name=name.title(),
        role=Role.MEMBER,
    )
    credential = await org.node.vault.credential(user.id, None)
    personal = PersonalSettings(
        user_id=user.id,
        **{
            "automatically_follow_topics_policy": 4,
            "automatically_follow_topics_where_mentioned": False,
            **settings,
        },
    )
    await org.do(UserCreated(user=user, credential=credential, settings=personal))
    return org.person_of(name, user)


FOLLOW = "automatically_follow_topics_policy"
UNMUTE = "automatically_unmute_topics_in_muted_channels_policy"


WRITING: list[tuple[dict[str, int], bool, int | None, int | None]] = [
    ({FOLLOW: 1}, False, FOLLOWED, FOLLOWED),
    ({FOLLOW: 2}, False, FOLLOWED, FOLLOWED),
    ({FOLLOW: 3}, False, FOLLOWED, None),
    ({FOLLOW: 4, UNMUTE: 4}, True, None, None),
    ({UNMUTE: 1}, True, UNMUTED, UNMUTED),
    ({UNMUTE: 2}, True, UNMUTED, UNMUTED),
    ({UNMUTE: 3}, True, UNMUTED, None),
    ({UNMUTE: 2}, False, None, None),
    ({FOLLOW: 3, UNMUTE: 2}, True, FOLLOWED, UNMUTED),
]
"""Settings, whether the channel is muted, and the resulting policies of an own and of someone
else's topic."""


async def test_posting_in_a_topic_changes_its_policy(org: Organization) -> None:
    for number, (settings, muted, first, later) in enumerate(WRITING):
        with row(settings, muted):
            dora = await with_settings(org, f"dora{number}", **settings)
            channel = await org.channel(f"lounge{number}", "ann", f"dora{number}")
            await org.do(
                SubscriptionChanged(
                    channel_id=channel, user_id=dora.user_id, property="is_muted", value=muted
                )
            )
            await org["ann"].send(channel, "old", "begun by ann")
            queue = await dora.register(event_types=["message", "user_topic"])
            for topic, expected in (("new", first), ("old", later)):
                sent = {"type": "channel", "to": channel, "topic": topic, "content": "hi"}
                reply = (await dora.post("/messages", **sent)).ok
                assert reply.get("automatic_new_visibility_policy") == expected
                events = await queue.events()
                kinds = ["message", "user_topic"] if expected else ["message"]
                assert [event["type"] for event in events] == kinds
                # An equal policy sends no event.
                assert (
                    "automatic_new_visibility_policy"
                    not in (await dora.post("/messages", **sent)).ok
                )
                assert [event["type"] for event in await queue.events()] == ["message"]
            shown = [("new", first), ("old", later)]
            assert await own(dora) == [
                (channel, topic, policy) for topic, policy in shown if policy
            ]


@pytest.mark.parametrize(
    ("before", "after"), [(MUTED, FOLLOWED), (UNMUTED, FOLLOWED), (FOLLOWED, FOLLOWED)]
)
async def test_participation_never_lowers_a_policy(
    org: Organization, before: int, after: int
) -> None:
    dora = await with_settings(org, "dora", **{FOLLOW: 2})
    channel = await org.channel("lounge", "dora")
    wanted = {"stream_id": channel, "topic": "tea"}
    assert (await dora.post(TOPICS, **wanted, visibility_policy=before)).ok
    await dora.send("lounge", "tea", "hi")
    assert await own(dora) == [(channel, "tea", after)]


async def test_participation_does_not_change_followed_to_unmuted(org: Organization) -> None:
    dora = await with_settings(org, "dora", **{UNMUTE: 2})
    channel = await org.channel("lounge", "dora")
    await org.do(
        SubscriptionChanged(
            channel_id=channel, user_id=dora.user_id, property="is_muted", value=True
        )
    )
    wanted = {"stream_id": channel, "topic": "tea"}
    assert (await dora.post(TOPICS, **wanted, visibility_policy=FOLLOWED)).ok
    await dora.send("lounge", "tea", "hi")
    assert await own(dora) == [(channel, "tea", FOLLOWED)]


@pytest.mark.parametrize(
    ("content", "follows", "expected"),
    [
        ("@**Dora** look", True, True),
        ("@**Dora** look", False, False),
        ("@_**Dora** quietly", True, False),
        ("@**all** look", True, False),
    ],
)
async def test_people_mentioned_by_name_follow_the_topic_if_they_want_to(
    org: Organization, content: str, follows: bool, expected: bool
) -> None:
    where_mentioned = {"automatically_follow_topics_where_mentioned": follows}
    dora = await with_settings(org, "dora", **where_mentioned)
    channel = await org.channel("lounge", "ann", "dora")
    queue = await dora.register(event_types=["user_topic"])
    await org["ann"].send("lounge", "tea", content)
    assert await own(dora) == ([(channel, "tea", FOLLOWED)] if expected else [])
    assert len(await queue.events()) == expected


async def test_bots_and_direct_messages_follow_nothing(org: Organization) -> None:
    dora = await with_settings(org, "dora", **{FOLLOW: 1})
    await org.channel("lounge", "robo")
    await org["robo"].send("lounge", "tea", "hi")
    reply = await dora.post("/messages", type="direct", to=[org["ben"].user_id], content="hi")
    assert "automatic_new_visibility_policy" not in reply.ok
    assert await own(dora) == await own(org["robo"]) == []


async def test_new_accounts_follow_the_topics_they_start(org: Organization) -> None:
    await org.add("dora", follows=True)
    channel = await org.channel("lounge", "ann", "dora")
    await org["ann"].send("lounge", "old", "hi")
    for topic in ("old", "new"):
        await org["dora"].send("lounge", topic, "hi")
    assert await own(org["dora"]) == [(channel, "new", FOLLOWED)]
    await org["ann"].send("lounge", "other", "@**Dora**")
    assert (channel, "other", FOLLOWED) in await own(org["dora"])


def test_new_accounts_have_the_default_settings() -> None:
    usual = msgspec.structs.asdict(PersonalSettings(user_id=1))
    assert (usual[FOLLOW], usual[UNMUTE]) == (3, 2)
    assert usual["automatically_follow_topics_where_mentioned"] is True


async def test_a_reaction_follows_no_topic(org: Organization) -> None:
    dora = await with_settings(org, "dora", **{FOLLOW: 1})
    await org.channel("lounge", "ann", "dora")
    message_id = await org["ann"].send("lounge", "tea", "hi")
    await dora.post(f"/messages/{message_id}/reactions", emoji_name="heart")
    assert await own(dora) == []


# Moving


@pytest.mark.parametrize(
    ("before", "there", "joined", "after"),
    [
        (MUTED, NONE, False, MUTED),
        (FOLLOWED, NONE, False, FOLLOWED),
        (FOLLOWED, MUTED, False, FOLLOWED),
        (MUTED, NONE, True, NONE),
        (MUTED, FOLLOWED, True, FOLLOWED),
        (FOLLOWED, MUTED, True, FOLLOWED),
        (UNMUTED, NONE, True, UNMUTED),
    ],
)
async def test_a_policy_moves_with_a_whole_topic(
    shared_org: Organization, before: int, there: int, joined: bool, after: int
) -> None:
    ann, ben = shared_org["ann"], shared_org["ben"]
    channel = await shared_org.channel(f"{before} {there} {joined}", "ann", "ben")
    first = await ann.send(channel, "tea", "a")
    last = await ann.send(channel, "tea", "b")
    if joined:
        await ann.send(channel, "cake", "c")
    for topic, policy in (("tea", before), ("cake", there)):
        about = {"stream_id": channel, "topic": topic}
        assert (await ben.post(TOPICS, **about, visibility_policy=policy)).ok
    # If messages remain, the policy stays.
    assert (await ann.patch(f"/messages/{last}", topic="plans")).ok
    assert (channel, "tea", before) in await own(ben)
    listener = await ben.register(event_types=["user_topic"])
    assert (await ann.patch(f"/messages/{first}", topic="cake")).ok
    expected = [(channel, "cake", after)] if after else []
    assert [one for one in await own(ben) if one[0] == channel] == expected
    events = [(e["topic_name"], e["visibility_policy"]) for e in await listener.events()]
    assert events == [("tea", NONE), *([("cake", after)] if after != there else [])]
    # (Others don't find any.)
    left = {"stream_id": channel, "topic": "cake", "visibility_policy": NONE}
    assert (await ben.post(TOPICS, **left)).ok


async def test_a_policy_does_not_move_to_an_inaccessible_channel(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    vault = await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("lounge", "tea", "a")
    wanted = {"stream_id": channel, "topic": "tea", "visibility_policy": FOLLOWED}
    assert (await org["ben"].post(TOPICS, **wanted)).ok
    assert (await org["ann"].patch(f"/messages/{sent}", stream_id=vault)).ok
    assert await own(org["ben"]) == []
