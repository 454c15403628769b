"""Messages cached in memory equal those in the database, whatever happened to them."""

import json
import operator
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tertulia.domain.messages import scopes
from tertulia.model.changes import Unsubscribed
from tertulia.model.errors import Conflict
from tertulia.model.narrow import Scope
from tertulia.service.config import Config
from tertulia.service.messages import recent, recent_page
from tertulia.service.messages.recent import ReceivedScopes, RecentMessages
from tertulia.store.readers import Person, Requester, current_requester, reading_for
from tests.support import Organization, open_organization, until
from tests.wire.sample_organization import LIMITED, Data, flag

pytestmark = pytest.mark.usefixtures("no_logged_errors")

VIEWERS = ("ann", "ben", "gus", "robo")
NARROWS: tuple[list[Data], ...] = (
    [],
    [{"operator": "search", "operand": "tea"}],
    [{"operator": "search", "operand": "tea", "negated": True}],
)
Page = list[Data]


@dataclass
class Talk:
    """An organization with some messages."""

    org: Organization
    ids: dict[str, int] = field(default_factory=dict)
    """Channels and messages."""

    async def page(self, viewer: str, narrow: Sequence[Data], **asked: Any) -> Page:
        reply = await self.org[viewer].get("/messages", narrow=json.dumps(narrow), **asked)
        assert (reply.ok["found_oldest"], reply.ok["found_newest"]) == (True, True)
        messages: Page = reply.ok["messages"]
        return messages

    async def pages(self) -> list[Page]:
        """What each viewer sees in each narrow, newest first."""
        newest = {"anchor": "newest", "num_before": 100, "num_after": 0}
        return [
            await self.page(viewer, narrow, **newest) for viewer in VIEWERS for narrow in NARROWS
        ]

    async def stored(self) -> list[Page]:
        """The same, read from the database."""
        self.org.node.encoded_messages.clear()
        oldest = {"anchor": "oldest", "num_before": 0, "num_after": 100}
        return [
            await self.page(viewer, narrow, **oldest) for viewer in VIEWERS for narrow in NARROWS
        ]


@pytest.fixture
async def talk(org: Organization) -> Talk:
    made = Talk(org)
    made.ids["lounge"] = await org.channel("lounge", "ann", "ben", "cleo", "gus")
    made.ids["den"] = await org.channel("den", "ann", is_private=True)
    made.ids["porch"] = await org.channel("porch", "ben")
    for name, who, where, content in (
        ("one", "ben", "lounge", "green tea #12"),
        ("two", "cleo", "lounge", "tea for @**Ben**"),
        ("three", "ben", "porch", "coffee"),
        ("poll", "cleo", "lounge", "/poll tea?\nyes\nno"),
    ):
        made.ids[name] = await org[who].send(where, "drinks #12", content)
    made.ids["direct"] = await org["ben"].write([org["gus"].user_id], "tea alone")
    return made


async def edited(talk: Talk) -> None:
    await talk.org["ben"].patch(f"/messages/{talk.ids['one']}", content="no more tea")


async def edited_to_other_words(talk: Talk) -> None:
    await talk.org["ben"].patch(f"/messages/{talk.ids['one']}", content="water")


async def moved(talk: Talk) -> None:
    reply = await talk.org["ann"].patch(
        f"/messages/{talk.ids['one']}", topic="tea", propagate_mode="change_one"
    )
    assert reply.ok


async def moved_out_of_sight(talk: Talk) -> None:
    reply = await talk.org["ann"].patch(
        f"/messages/{talk.ids['one']}", stream_id=talk.ids["den"], propagate_mode="change_one"
    )
    assert reply.ok


async def deleted(talk: Talk) -> None:
    assert (await talk.org["ann"].delete(f"/messages/{talk.ids['poll']}")).ok


async def sent(talk: Talk) -> None:
    talk.ids["new"] = await talk.org["ann"].send("lounge", "drinks", "iced tea")


async def reacted(talk: Talk) -> None:
    path = f"/messages/{talk.ids['two']}/reactions"
    assert (await talk.org["gus"].post(path, emoji_name="tada")).ok


async def took_it_back(talk: Talk) -> None:
    path = f"/messages/{talk.ids['two']}/reactions"
    assert (await talk.org["gus"].delete(path, emoji_name="tada")).ok


async def voted(talk: Talk) -> None:
    reply = await talk.org["ben"].post(
        "/submessage",
        message_id=talk.ids["poll"],
        msg_type="widget",
        content=json.dumps({"type": "vote", "key": "canned,0", "vote": 1}),
    )
    assert reply.ok


async def starred(talk: Talk) -> None:
    await flag(talk.org, "ben", "add", "starred", talk.ids["two"], talk.ids["direct"])


async def starred_from_the_history(talk: Talk) -> None:
    """As a historical message."""
    await flag(talk.org, "ann", "add", "starred", talk.ids["three"])


async def read(talk: Talk) -> None:
    await flag(talk.org, "gus", "add", "read", talk.ids["one"])


async def registered(talk: Talk) -> None:
    """From now on, the messages that they read are in memory."""
    for name in VIEWERS:
        await talk.org[name].register()


async def renamed(talk: Talk) -> None:
    assert (await talk.org["ann"].patch(f"/users/{talk.org['ben'].user_id}", full_name="Bob")).ok


async def renamed_the_channel(talk: Talk) -> None:
    assert (await talk.org["ann"].patch(f"/streams/{talk.ids['lounge']}", new_name="salon")).ok


async def linkified(talk: Talk) -> None:
    reply = await talk.org["ann"].post(
        "/realm/filters", pattern="#(?P<id>[0-9]+)", url_template="https://example.com/{id}"
    )
    assert reply.ok


async def hid_the_address(talk: Talk) -> None:
    assert (await talk.org["ben"].patch("/settings", email_address_visibility=5)).ok


async def limited_guests(talk: Talk) -> None:
    await talk.org.do(LIMITED)


async def deactivated(talk: Talk) -> None:
    assert (await talk.org["ann"].delete(f"/users/{talk.org['cleo'].user_id}")).ok


async def unsubscribed(talk: Talk) -> None:
    lounge = talk.ids["lounge"]
    until = talk.org.node.state.last_message_id
    user_ids = (talk.org["gus"].user_id, talk.org["ben"].user_id)
    await talk.org.do(
        Unsubscribed(channel_id=lounge, user_ids=user_ids, until=until, name="lounge")
    )


async def made_a_guest(talk: Talk) -> None:
    """Guests read only the received messages of public channels."""
    assert (await talk.org["ann"].patch(f"/users/{talk.org['ben'].user_id}", role=600)).ok


async def closed_the_history(talk: Talk) -> None:
    reply = await talk.org["ann"].patch(
        f"/streams/{talk.ids['lounge']}", is_private=True, history_public_to_subscribers=False
    )
    assert reply.ok


Happening = Callable[[Talk], Awaitable[None]]
SEEN: tuple[Happening, ...] = (
    edited,
    edited_to_other_words,
    moved,
    moved_out_of_sight,
    deleted,
    sent,
    reacted,
    voted,
    starred,
    starred_from_the_history,
    read,
    renamed,
    renamed_the_channel,
    linkified,
    hid_the_address,
    unsubscribed,
)
ALL_OF_IT: tuple[Happening, ...] = (
    starred_from_the_history,
    reacted,
    linkified,
    moved,
    registered,
    hid_the_address,
    took_it_back,
    limited_guests,
    unsubscribed,
    sent,
    made_a_guest,
    renamed,
    closed_the_history,
    edited,
    deactivated,
    deleted,
)


@pytest.mark.parametrize("happens", SEEN, ids=lambda one: one.__name__)
@pytest.mark.parametrize("first", [None, registered], ids=["", "registered"])
async def test_every_change_is_visible_in_the_newest_messages(
    talk: Talk, happens: Happening, first: Happening | None
) -> None:
    if first is not None:
        await first(talk)
    before = await talk.pages()
    await happens(talk)
    after = await talk.pages()
    assert after != before
    assert after == await talk.stored()


async def test_cached_messages_equal_stored_ones_before_any_change(talk: Talk) -> None:
    assert await talk.pages() == await talk.stored()
    await registered(talk)
    assert await talk.pages() == await talk.stored()


async def test_cached_messages_equal_stored_ones_after_all_changes(talk: Talk) -> None:
    for happens in ALL_OF_IT:
        await talk.pages()
        await happens(talk)
        assert await talk.pages() == await talk.stored(), happens.__name__


async def opened_a_private_channel_to_a_group(talk: Talk) -> None:
    reply = await talk.org["ann"].post(
        "/user_groups/create", name="tasters", description="", members="[]"
    )
    talk.ids["tasters"] = reply.ok["group_id"]
    setting = json.dumps({"new": talk.ids["tasters"]})
    path = f"/streams/{talk.ids['den']}"
    for values in ({"can_subscribe_group": setting}, {"history_public_to_subscribers": "true"}):
        assert (await talk.org["ann"].patch(path, **values)).ok


async def joined_the_group(talk: Talk) -> None:
    members = json.dumps([talk.org["ben"].user_id])
    path = f"/user_groups/{talk.ids['tasters']}/members"
    assert (await talk.org["ann"].post(path, add=members)).ok


async def wrote_to_another(talk: Talk) -> None:
    await talk.org["ann"].write([talk.org["ben"].user_id], "tea?")


async def test_newer_messages_are_found_although_older_ones_were_changed(talk: Talk) -> None:
    node = talk.org.node
    await node.recent_messages.bring_up_to_date(node.log)
    await reacted(talk)  # To the second.
    for word, newer in (("", ["direct", "poll", "three"]), ("tea", ["direct", "poll"])):
        found = node.recent_messages.newest_first(node.state, word)
        assert [next(found)[1].message.id for _ in newer] == [talk.ids[name] for name in newer]
        with pytest.raises(Conflict):
            next(found)
    # It may contain the word now.
    with pytest.raises(Conflict):
        next(node.recent_messages.newest_first(node.state, "juice"))


async def test_received_messages_are_cached_until_they_change(talk: Talk) -> None:
    kept, few = ReceivedScopes(), ReceivedScopes(5)
    await opened_a_private_channel_to_a_group(talk)
    changing = (joined_the_group, wrote_to_another)
    people = [talk.org[name].user_id for name in VIEWERS]
    before: list[Scope] = []
    for happens in (registered, sent, *changing, *ALL_OF_IT):
        await happens(talk)
        state = talk.org.node.state
        users = [state.users[user_id] for user_id in people]
        found = [kept.of(state, user) for user in users]
        assert found == [scopes.received_scope(state, user) for user in users], happens.__name__
        assert found == [few.of(state, user) for user in users]
        # Sending doesn't change them.
        assert happens is not sent or all(map(operator.is_, found, before))
        assert happens not in changing or found != before
        before = found
    assert len(kept) == len(VIEWERS)
    assert 0 < len(few) < len(VIEWERS)


async def test_unread_messages_are_cached_until_they_change(talk: Talk) -> None:
    async def unread() -> list[Data]:
        fetched = json.dumps(["message", "update_message_flags"])
        asked = [talk.org[name].post("/register", fetch_event_types=fetched) for name in VIEWERS]
        return [(await one).ok["unread_msgs"] for one in asked]

    before: list[Data] = []
    for happens in (registered, wrote_to_another, sent, read, *ALL_OF_IT):
        await happens(talk)
        index = talk.org.node.state.unread
        found = await unread()
        kept = [reader.unread for reader in index.readers.values()]
        assert await unread() == found
        assert all(map(operator.is_, [one.unread for one in index.readers.values()], kept))
        for reader in index.readers.values():
            reader.unread, reader.unread_of, reader.fresh = None, (0, 0, 0), {}
        for channel in index.channels.values():
            channel.changed()
        assert await unread() == found, happens.__name__
        assert happens not in (wrote_to_another, sent, read) or found != before
        before = found


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_another_node_s_changes_are_visible(talk: Talk, config: Config) -> None:
    async with open_organization(config) as elsewhere:
        other = Talk(elsewhere, talk.ids)
        for happens in (edited, moved, reacted, moved_out_of_sight, sent, deleted):
            before = await talk.pages()
            await happens(other)
            await talk.org.node.log.catch_up()
            after = await talk.pages()
            assert after != before, happens.__name__
            assert after == await talk.stored() == await other.pages(), happens.__name__


async def test_a_page_continues_in_the_database_where_memory_ends(talk: Talk) -> None:
    """As if all of it were stored there."""
    for number in range(30):
        await talk.org["ben"].send(("lounge", "porch")[number % 2], "tea", f"cup {number}")
    await starred_from_the_history(talk)
    for most in (3, 10, 1000):
        object.__setattr__(talk.org.node, "recent_messages", RecentMessages(most))
        assert await talk.pages() == await talk.stored()
        await talk.org["ben"].send("lounge", "tea", f"more than {most}")
        assert await talk.pages() == await talk.stored()
        for before in (1, 2, most, 17, 20):
            reply = await talk.org["gus"].get(
                "/messages", narrow="[]", anchor="newest", num_before=before, num_after=0
            )
            every = await talk.page("gus", [], anchor="oldest", num_before=0, num_after=100)
            assert reply.ok["messages"] == every[-before:]
            assert reply.ok["found_oldest"] is (before >= len(every))


@pytest.mark.parametrize(
    ("narrow", "is_begun"),
    [
        ([], True),
        ([{"operator": "search", "operand": "green tea"}], True),
        ([{"operator": "search", "operand": "tea " + " ".join(map(str, range(10)))}], False),
        ([{"operator": "search", "operand": f'"{"x " * 99}"', "negated": True}], False),
    ],
)
async def test_work_that_would_block_the_event_loop_is_left_to_the_database(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, narrow: list[Data], is_begun: bool
) -> None:
    begun: list[object] = []
    begin = recent_page._begun

    def noted(*of: Any) -> Any:
        begun.append(of)
        return begin(*of)

    monkeypatch.setattr(recent_page, "_begun", noted)
    newest = {"anchor": "newest", "num_before": 100, "num_after": 0}
    oldest = {"anchor": "oldest", "num_before": 0, "num_after": 100}
    assert await talk.page("ann", narrow, **newest) == await talk.page("ann", narrow, **oldest)
    assert bool(begun) is is_begun


async def test_the_cache_is_limited(talk: Talk) -> None:
    kept = RecentMessages(characters=600)
    object.__setattr__(talk.org.node, "recent_messages", kept)
    for number in range(10):
        await talk.org["ben"].send("lounge", "tea", f"{number} {'x' * 100}")
        assert await talk.pages() == await talk.stored()
    assert 0 < len(kept) < 5
    # With their earlier content.
    before = len(kept)
    mid = await talk.org["ben"].send("lounge", "tea", "first")
    for number in range(5):
        await talk.org["ben"].patch(f"/messages/{mid}", content=f"{number} {'y' * 50}")
        assert await talk.pages() == await talk.stored()
    assert len(kept) < before


async def test_waiting_for_another_load_has_an_end(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "READ_SECONDS", 0.01)
    newest: Data = {"anchor": "newest", "num_before": 100, "num_after": 0}
    async with talk.org.node.recent_messages._lock:
        reply = await talk.org["ben"].get("/messages", narrow="[]", **newest)
        assert reply.status == 503
    assert await talk.page("ben", [], **newest)


async def test_loading_the_cache_uses_nobody_s_share_of_the_readers(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everyone waits for it, and one person may have many other waiting reads."""
    node, ann = talk.org.node, talk.org["ann"].user_id
    people: list[Person] = []
    real = node.store.read

    async def read(look: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        if look.__module__ == recent.__name__:  # Jobs read, too.
            people.append(current_requester.get().person)
        return await real(look, *arguments, **keywords)

    monkeypatch.setattr(node.store, "read", read)
    with reading_for(Requester(ann)):
        await RecentMessages().bring_up_to_date(node.log)
        assert current_requester.get().person == ann
    assert people == ["newest messages"]


async def test_uncommitted_messages_leave_nothing_in_the_cache(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The state is reloaded, and other entries get their numbers."""
    before = await talk.pages()
    store = talk.org.node.store
    state = talk.org.node.state
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "_commit", lambda *_: 1 / 0)
        path = f"/messages/{talk.ids['one']}"
        reply = await talk.org["ben"].patch(path, content="never said")
        assert reply.status == 503
    caplog.clear()
    await until(lambda: talk.org.node.state is not state)
    assert await talk.pages() == before
    await edited(talk)
    assert await talk.pages() == await talk.stored() != before
