"""Subscribing, unsubscribing, and personal channel settings."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged, UserDeactivated
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Role
from tests.support import Listener, Organization, row
from tests.wire.sample_organization import direct_messages

SUBSCRIPTIONS = "/users/me/subscriptions"
ARCHIVED = {"archived_channels": True}


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


async def event_names(listener: Listener) -> list[tuple[str, str]]:
    """Type and op of each event other than messages."""
    return [
        (event["type"], event.get("op", ""))
        for event in await listener.events()
        if event["type"] != "message"
    ]


# Subscribing


async def test_subscribing_to_an_unknown_name_creates_the_channel(org: Organization) -> None:
    ben = org["ben"]
    description = {"name": " lounge ", "description": "for *all*"}
    reply = await ben.post(SUBSCRIPTIONS, subscriptions=[description])
    assert reply.ok["subscribed"] == {str(ben.user_id): ["lounge"]}
    assert reply.ok["already_subscribed"] == {}
    assert reply.ok["new_subscription_messages_sent"] is True
    assert "unauthorized" not in reply.ok
    (own,) = (await ben.get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert own["name"] == "lounge"
    assert own["description"] == "for *all*"
    assert own["rendered_description"].startswith("<p>")
    assert own["creator_id"] == ben.user_id
    assert own["can_administer_channel_group"] == {
        "direct_members": [ben.user_id],
        "direct_subgroups": [],
    }
    assert own["subscriber_count"] == 1


async def test_a_channel_name_is_found_in_any_letter_case(org: Organization) -> None:
    await org.channel("Lounge", "ann")
    reply = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("LOUNGE"))
    assert reply.ok["subscribed"] == {str(org["ben"].user_id): ["Lounge"]}
    again = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("lounge", "lounge"))
    assert again.ok["already_subscribed"] == {str(org["ben"].user_id): ["Lounge"]}
    assert again.ok["subscribed"] == {}


async def test_new_channels_get_different_colors(org: Organization) -> None:
    await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("a", "b", "c"))
    own = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert len({one["color"] for one in own}) == 3


async def test_a_returning_subscriber_keeps_the_color(org: Organization) -> None:
    ben = org["ben"]
    wanted = [{"name": "a", "color": "#ABC"}]
    await ben.post(SUBSCRIPTIONS, subscriptions=wanted)
    assert (await ben.delete(SUBSCRIPTIONS, subscriptions=["a"])).ok
    assert (await ben.post(SUBSCRIPTIONS, subscriptions=named("a"))).ok
    (own,) = (await ben.get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert own["color"] == "#aabbcc"


async def test_a_left_channel_s_color_is_not_reused(
    org: Organization,
) -> None:
    ben = org["ben"]
    await ben.post(SUBSCRIPTIONS, subscriptions=named("a"))
    await ben.delete(SUBSCRIPTIONS, subscriptions=["a"])
    for name in ("b", "a"):
        assert (await ben.post(SUBSCRIPTIONS, subscriptions=named(name))).ok
    own = (await ben.get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert len({one["color"] for one in own}) == len(own) == 2


async def test_others_are_subscribed_by_id_or_address_and_notified(org: Organization) -> None:
    await org.channel("lounge", "ann")
    ben, cleo, robo = org["ben"], org["cleo"], org["robo"]
    principals = [cleo.user_id, robo.email, cleo.email]
    reply = await ben.post(
        SUBSCRIPTIONS, subscriptions=named("lounge", "den"), principals=principals
    )
    expected = {str(cleo.user_id): ["lounge", "den"], str(robo.user_id): ["lounge", "den"]}
    assert reply.ok["subscribed"] == expected
    assert await direct_messages(cleo) == [
        f"@_**Ben|{ben.user_id}** subscribed you to the channels #**lounge**, #**den**."
    ]
    assert await direct_messages(robo) == []
    assert await direct_messages(ben) == []


async def test_a_request_can_disable_the_notification(org: Organization) -> None:
    reply = await org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=named("den"),
        principals=[org["cleo"].user_id],
        send_new_subscription_messages=False,
    )
    assert "new_subscription_messages_sent" not in reply.ok
    assert await direct_messages(org["cleo"]) == []


async def test_beyond_the_limit_nobody_is_notified(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tertulia.domain.channels.subscriptions.MAX_BULK_NEW_SUBSCRIPTION_MESSAGES", 1
    )
    both = [org["cleo"].user_id, org["gus"].user_id]
    reply = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("den"), principals=both)
    assert reply.ok["new_subscription_messages_sent"] is False
    assert await direct_messages(org["cleo"]) == []


@pytest.mark.parametrize("principals", [[999], ["nobody@example.com"], [1], [2**53], ["\N{BELL}"]])
async def test_an_unknown_principal_is_refused_and_nothing_is_created(
    readonly_org: Organization, principals: list[Any]
) -> None:
    reply = await readonly_org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=named("den"),
        principals=[readonly_org["cleo"].user_id, *principals],
    )
    reply.refused()
    assert (await readonly_org["ben"].get("/streams")).ok["streams"] == []


async def test_a_deactivated_principal_is_refused(org: Organization) -> None:
    await org.channel("den", "cleo")
    await org.do(UserDeactivated(user_id=org["cleo"].user_id))
    principals = [org["cleo"].user_id]
    for method in ("POST", "DELETE"):
        wanted = named("den") if method == "POST" else ["den"]
        reply = await org["ann"].request(
            method, SUBSCRIPTIONS, subscriptions=wanted, principals=principals
        )
        reply.refused()


@pytest.mark.parametrize(
    "name",
    ["", "   ", "x" * 61, "a\u0000b", "a\u0007b"],
)
async def test_an_invalid_name_is_refused(readonly_org: Organization, name: str) -> None:
    reply = await readonly_org["ben"].post(SUBSCRIPTIONS, subscriptions=named("good", name))
    assert reply.body["result"] == "error"
    assert reply.status == 400
    assert (await readonly_org["ben"].get("/streams")).ok["streams"] == []


@pytest.mark.parametrize("text", ["lounge", '["lounge"]', "{}", '[{"name": 3}]', "[{}]", "null"])
async def test_subscriptions_in_another_form_are_refused(
    readonly_org: Organization, text: str
) -> None:
    (await readonly_org["ben"].post(SUBSCRIPTIONS, subscriptions=text)).refused(
        "REQUEST_VARIABLE_INVALID"
    )


async def test_a_request_that_would_change_too_much_is_refused(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [f"c{number}" for number in range(1001)]
    reply = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named(*many))
    reply.refused("REQUEST_VARIABLE_INVALID")
    monkeypatch.setattr("tertulia.domain.channels.subscriptions.MAX_SUBSCRIPTIONS", 3)
    people = [org["ben"].user_id, org["cleo"].user_id]
    assert (await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("a"), principals=people)).ok
    reply = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("b", "c"), principals=people)
    assert "at most 3 subscriptions, but 2 channels for 2 people are more" in reply.refused()["msg"]
    (await org["ben"].delete(SUBSCRIPTIONS, subscriptions=["a", "a"], principals=people)).refused()


async def test_a_guest_can_neither_create_nor_join(org: Organization) -> None:
    await org.channel("lounge", "ann")
    (await org["gus"].post(SUBSCRIPTIONS, subscriptions=named("den"))).refused()
    (await org["gus"].post(SUBSCRIPTIONS, subscriptions=named("lounge"))).refused()


async def test_an_inaccessible_channel_is_refused_or_listed(org: Organization) -> None:
    await org.channel("vault", "ann", is_private=True, history_public=False)
    await org.channel("lounge", "ann")
    ben = org["ben"]
    (await ben.post(SUBSCRIPTIONS, subscriptions=named("vault", "lounge"))).refused()
    reply = await ben.post(
        SUBSCRIPTIONS,
        subscriptions=named("vault", "lounge"),
        authorization_errors_fatal=False,
    )
    assert reply.ok["unauthorized"] == ["vault"]
    assert reply.ok["subscribed"] == {str(ben.user_id): ["lounge"]}


async def test_people_who_cannot_create_channels_do_not_learn_about_hidden_ones(
    org: Organization,
) -> None:
    await org.channel("vault", "ann", is_private=True)
    await org.do(RealmChanged(values={"can_create_public_channel_group": SystemGroup.OWNERS.value}))
    names = ("VAULT", "NOWHERE")
    hidden, absent = [
        await org["ben"].post(SUBSCRIPTIONS, subscriptions=named(name)) for name in names
    ]
    assert hidden.body == absent.body == hidden.refused()
    listed = [
        await org["ben"].post(
            SUBSCRIPTIONS, subscriptions=named(name), authorization_errors_fatal=False
        )
        for name in names
    ]
    for name, reply in zip(names, listed, strict=True):
        assert reply.ok["unauthorized"] == [name]
    assert listed[1].body == {**listed[0].body, "unauthorized": ["NOWHERE"]}


@pytest.mark.parametrize(
    ("who", "rights", "people", "unauthorized"),
    [
        ("gus", {}, ["gus"], ["lounge", "vault", "den"]),
        ("ben", {}, ["ben"], ["vault"]),
        ("ben", {"can_create_public_channel_group": SystemGroup.OWNERS}, ["ben"], ["vault", "den"]),
        ("ben", {"can_add_subscribers_group": SystemGroup.OWNERS}, ["cleo"], ["lounge", "vault"]),
    ],
)
async def test_every_missing_permission_is_listed_if_it_is_not_fatal(
    org: Organization, who: str, rights: dict[str, Any], people: list[str], unauthorized: list[str]
) -> None:
    await org.do(RealmChanged(values={name: group.value for name, group in rights.items()}))
    await org.channel("lounge", "ann")
    await org.channel("vault", "ann", is_private=True)
    wanted = {
        "subscriptions": named("lounge", "vault", "den"),
        "principals": [org[name].user_id for name in people],
    }
    (await org[who].post(SUBSCRIPTIONS, **wanted)).refused()
    reply = await org[who].post(SUBSCRIPTIONS, **wanted, authorization_errors_fatal=False)
    assert reply.ok["unauthorized"] == unauthorized
    allowed = [name for name in ("lounge", "vault", "den") if name not in unauthorized]
    told = {str(org[name].user_id): allowed for name in people} if allowed else {}
    assert reply.ok["subscribed"] == told
    assert (org.node.state.channel_named("den") is None) is ("den" in unauthorized)


async def test_members_of_can_subscribe_group_join_a_private_channel(org: Organization) -> None:
    ben = org["ben"]
    await org.channel(
        "vault",
        "ann",
        is_private=True,
        can_subscribe_group=SystemGroup.MEMBERS.value,
    )
    reply = await ben.post(SUBSCRIPTIONS, subscriptions=named("vault"))
    assert reply.ok["subscribed"] == {str(ben.user_id): ["vault"]}


async def test_subscribing_others_needs_permission(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    await org.do(RealmChanged(values={"can_add_subscribers_group": SystemGroup.OWNERS.value}))
    other = [org["cleo"].user_id]
    reply = await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("lounge"), principals=other)
    reply.refused()
    assert (
        await org["ann"].post(SUBSCRIPTIONS, subscriptions=named("lounge"), principals=other)
    ).ok
    # The creator administers the channel and may add people.
    assert (await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("den"), principals=other)).ok


@pytest.mark.parametrize(
    "options",
    [
        {"invite_only": True, "is_web_public": True},
        {"invite_only": True, "is_default_stream": True},
        {"history_public_to_subscribers": False},
        {"is_web_public": True},
        {"folder_id": 1},
        {"topics_policy": "sometimes"},
        {"message_retention_days": 0},
        {"message_retention_days": "soon"},
        {"can_send_message_group": 99},
        {"can_send_message_group": SystemGroup.INTERNET.value},
        {"can_subscribe_group": SystemGroup.EVERYONE.value},
        {"can_add_subscribers_group": SystemGroup.EVERYONE.value},
        {"can_send_message_group": {"direct_members": [999], "direct_subgroups": []}},
        {"can_send_message_group": {"direct_members": [], "direct_subgroups": [99]}},
        {"can_subscribe_group": {"direct_members": [4], "direct_subgroups": [7]}},
        {"can_send_message_group": {"direct_members": [1], "direct_subgroups": []}},
        {"can_send_message_group": "role:everyone"},
        {"invite_only": True, "can_create_topic_group": SystemGroup.MEMBERS.value},
        {"invite_only": "yes"},
    ],
)
async def test_an_invalid_channel_is_refused(
    readonly_org: Organization, options: dict[str, Any]
) -> None:
    reply = await readonly_org["ann"].post(SUBSCRIPTIONS, subscriptions=named("den"), **options)
    assert reply.status == 400, reply.body
    assert (await readonly_org["ann"].get("/streams")).ok["streams"] == []


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"message_retention_days": 3}, "UNAUTHORIZED_PRINCIPAL"),
    ({"is_default_stream": True}, "BAD_REQUEST"),
    ({"can_delete_any_message_group": 7}, "BAD_REQUEST"),
]
"""Options, and the error code for them."""


async def test_some_options_need_more_than_a_member(org: Organization) -> None:
    for number, (options, code) in enumerate(OPTIONS):
        with row(options):
            wanted = named(f"den{number}")
            (await org["ben"].post(SUBSCRIPTIONS, subscriptions=wanted, **options)).refused(code)
            assert (await org["ann"].post(SUBSCRIPTIONS, subscriptions=wanted, **options)).ok


async def test_every_option_of_a_new_channel_is_stored(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    ann, ben = org["ann"], org["ben"]
    group = {"direct_members": [ben.user_id, ann.user_id], "direct_subgroups": [4]}
    reply = await ann.post(
        SUBSCRIPTIONS,
        subscriptions=named("plaza"),
        is_web_public=True,
        is_default_stream=True,
        message_retention_days=30,
        topics_policy="disable_empty_topic",
        can_send_message_group=group,
        can_add_subscribers_group={"direct_members": [], "direct_subgroups": [3]},
        can_remove_subscribers_group=1,
    )
    assert reply.ok
    (own,) = (await ann.get("/streams", include_default=True)).ok["streams"]
    assert own["is_web_public"] is True
    assert own["is_default"] is True
    assert own["message_retention_days"] == 30
    assert own["topics_policy"] == "disable_empty_topic"
    assert own["can_send_message_group"] == {
        "direct_members": [ann.user_id, ben.user_id],
        "direct_subgroups": [4],
    }
    assert own["can_add_subscribers_group"] == 3
    assert own["can_remove_subscribers_group"] == 1
    new = await org.add("dora")
    assert len((await new.get(SUBSCRIPTIONS)).ok["subscriptions"]) == 1


async def test_a_private_channel_has_a_protected_history_by_default(org: Organization) -> None:
    await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("vault"), invite_only=True)
    await org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=named("attic"),
        invite_only=True,
        history_public_to_subscribers=True,
    )
    shown = {one["name"]: one for one in (await org["ben"].get("/streams")).ok["streams"]}
    assert shown["vault"]["history_public_to_subscribers"] is False
    assert shown["attic"]["history_public_to_subscribers"] is True


# Events for others


async def test_a_new_public_channel_is_sent_before_its_subscription(org: Organization) -> None:
    ben, cleo, gus = [await org[name].register() for name in ("ben", "cleo", "gus")]
    await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("lounge"))
    assert await event_names(ben) == [("stream", "create"), ("subscription", "add")]
    assert await event_names(cleo) == [("stream", "create"), ("subscription", "peer_add")]
    assert await event_names(gus) == []


async def test_a_new_private_channel_is_visible_to_its_subscribers_and_administrators(
    org: Organization,
) -> None:
    names = ("ann", "ben", "cleo", "gus")
    ann, ben, cleo, gus = [await org[name].register() for name in names]
    await org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=named("vault"),
        invite_only=True,
        principals=[org["ben"].user_id, org["gus"].user_id],
    )
    assert await event_names(ann) == [("stream", "create"), ("subscription", "peer_add")]
    assert await event_names(ben) == [("stream", "create"), ("subscription", "add")]
    assert await event_names(gus) == [("stream", "create"), ("subscription", "add")]
    assert await event_names(cleo) == []


async def test_subscriber_counts_are_correct(org: Organization) -> None:
    cleo = await org["cleo"].register()
    both = [org["ben"].user_id, org["gus"].user_id]
    await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("lounge"), principals=both)
    create, peers = await cleo.events()
    assert create["streams"][0]["subscriber_count"] == 0
    assert sorted(peers["user_ids"]) == sorted(both)
    assert peers["stream_ids"] == [create["streams"][0]["stream_id"]]


@pytest.mark.parametrize("wanted", [True, "partial", False])
async def test_a_subscription_includes_its_subscribers_on_request(
    org: Organization, wanted: bool | str
) -> None:
    await org.channel("lounge", "ann")
    listener = await org["ben"].register(include_subscribers=wanted)
    await org["ben"].post(SUBSCRIPTIONS, subscriptions=named("lounge"))
    (event,) = [e for e in await listener.events() if e["type"] == "subscription"]
    (shown,) = event["subscriptions"]
    assert shown["subscriber_count"] == 2
    people = [org["ann"].user_id, org["ben"].user_id]
    assert shown.get("subscribers") == (people if wanted else None)


async def test_someone_added_to_a_private_channel_gets_the_channel_first(org: Organization) -> None:
    channel = await org.channel("vault", "ann", is_private=True)
    ben, cleo = [await org[name].register() for name in ("ben", "cleo")]
    await org["ann"].post(
        SUBSCRIPTIONS, subscriptions=named("vault"), principals=[org["ben"].user_id]
    )
    assert await event_names(ben) == [("stream", "create"), ("subscription", "add")]
    assert await event_names(cleo) == []
    (await org["cleo"].get(f"/streams/{channel}")).refused()


async def test_leaving_a_private_channel_hides_it(org: Organization) -> None:
    channel = await org.channel("vault", "ann", "ben", is_private=True)
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    assert (await org["ben"].delete(SUBSCRIPTIONS, subscriptions=["vault"])).ok
    remove, delete = await ben.events()
    assert remove["op"] == "remove"
    assert remove["subscriptions"] == [{"stream_id": channel, "name": "vault"}]
    assert delete["type"] == "stream"
    assert delete["op"] == "delete"
    assert delete["stream_ids"] == [channel]
    (peer,) = await ann.events()
    assert peer["op"] == "peer_remove"
    assert peer["user_ids"] == [org["ben"].user_id]
    assert await cleo.events() == []


async def test_leaving_a_public_channel_hides_it_only_for_guests(
    org: Organization,
) -> None:
    await org.channel("lounge", "ben", "gus")
    ben, gus = [await org[name].register() for name in ("ben", "gus")]
    both = [org["ben"].user_id, org["gus"].user_id]
    assert (await org["ann"].delete(SUBSCRIPTIONS, subscriptions=["lounge"], principals=both)).ok
    assert await event_names(ben) == [("subscription", "remove"), ("subscription", "peer_remove")]
    assert await event_names(gus) == [("subscription", "remove"), ("stream", "delete")]


async def test_a_queue_gets_no_more_events_of_a_lost_channel(org: Organization) -> None:
    channel = await org.channel("vault", "ann", "ben", is_private=True)
    ben = await org["ben"].register()
    assert (await org["ben"].delete(SUBSCRIPTIONS, subscriptions=["vault"])).ok
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="secret")).ok
    other = [org["cleo"].user_id]
    assert (
        await org["ann"].post(SUBSCRIPTIONS, subscriptions=named("secret"), principals=other)
    ).ok
    events = await ben.events()
    assert [event["op"] for event in events] == ["remove", "delete"]
    assert "secret" not in str(events)


async def test_a_late_poll_does_not_contain_what_became_inaccessible(org: Organization) -> None:
    channel = await org.channel("vault", "ann", is_private=True)
    ben = await org["ben"].register()
    people = [org["ben"].user_id]
    assert (
        await org["ann"].post(SUBSCRIPTIONS, subscriptions=named("vault"), principals=people)
    ).ok
    assert (await org["ann"].delete(SUBSCRIPTIONS, subscriptions=["vault"], principals=people)).ok
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="secret")).ok
    # The client never heard of the channel, so it isn't told that it's gone.
    assert [event for event in await ben.events() if event["type"] != "message"] == []


@pytest.mark.parametrize("polls_meanwhile", [True, False])
async def test_a_new_subscriber_gets_no_earlier_events(
    org: Organization, polls_meanwhile: bool
) -> None:
    channel = await org.channel("vault", "ann", "robo", is_private=True)
    cleo = await org["cleo"].register()
    ann, people = org["ann"], [org["cleo"].user_id]
    assert (await ann.patch(f"/streams/{channel}", description="a secret")).ok
    assert (await ann.patch(f"/streams/{channel}", description="nothing")).ok
    robo = [org["robo"].user_id]
    assert (await ann.delete(SUBSCRIPTIONS, subscriptions=["vault"], principals=robo)).ok
    if polls_meanwhile:
        assert await cleo.events() == []
    assert (await ann.post(SUBSCRIPTIONS, subscriptions=named("vault"), principals=people)).ok
    events = [event for event in await cleo.events() if event["type"] != "message"]
    assert [event["op"] for event in events] == ["create", "add"]
    assert "a secret" not in str(events)


async def test_a_late_poll_has_no_events_from_before_a_channel_was_opened(
    org: Organization,
) -> None:
    channel = await org.channel("vault", "ann", is_private=True)
    cleo = await org["cleo"].register()
    path = f"/streams/{channel}"
    assert (await org["ann"].patch(path, description="a secret")).ok
    assert (await org["ann"].patch(path, description="")).ok
    assert await cleo.events() == []
    assert (await org["ann"].patch(path, is_private=False)).ok
    events = await cleo.events()
    assert [event["op"] for event in events] == ["create", "peer_add"]
    assert "a secret" not in str(events)


async def test_people_who_leave_together_get_each_other_s_events(org: Organization) -> None:
    channel = await org.channel("lounge", "ben", "cleo", "gus")
    ben, gus = [await org[name].register() for name in ("ben", "gus")]
    all_three = [org[name].user_id for name in ("ben", "cleo", "gus")]
    assert (
        await org["ann"].delete(SUBSCRIPTIONS, subscriptions=["lounge"], principals=all_three)
    ).ok
    remove, peers = await ben.events()
    assert remove["op"] == "remove"
    assert (peers["op"], peers["stream_ids"]) == ("peer_remove", [channel])
    assert peers["user_ids"] == [org["cleo"].user_id, org["gus"].user_id]
    assert await event_names(gus) == [("subscription", "remove"), ("stream", "delete")]


# Unsubscribing


async def test_unsubscribing_reports_what_was_done(org: Organization) -> None:
    await org.channel("a", "ben")
    await org.channel("b", "ann")
    reply = await org["ben"].delete(SUBSCRIPTIONS, subscriptions=["A", "b"])
    assert reply.ok["removed"] == ["a"]
    assert reply.ok["not_removed"] == ["b"]
    assert (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"] == []


async def test_unknown_and_hidden_channels_are_refused_alike(org: Organization) -> None:
    await org.channel("vault", "ann", is_private=True)
    for name in ("vault", "nowhere"):
        reply = await org["ben"].delete(SUBSCRIPTIONS, subscriptions=[name])
        assert reply.refused("STREAM_DOES_NOT_EXIST")["stream"] == name
        assert (
            reply.body["msg"]
            == f"No channel named '{name}' exists, or you don't have access to it."
        )


async def test_one_unknown_channel_refuses_the_whole_request(org: Organization) -> None:
    await org.channel("a", "ben")
    reply = await org["ben"].delete(SUBSCRIPTIONS, subscriptions=["a", "nowhere"])
    reply.refused("STREAM_DOES_NOT_EXIST")
    assert len((await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]) == 1


UNSUBSCRIBING: list[tuple[str, str, dict[str, Any], bool]] = [
    ("ann", "ben", {}, True),
    ("ben", "cleo", {}, False),
    ("ben", "robo", {}, True),
    ("cleo", "robo", {}, False),
    ("ben", "cleo", {"can_remove_subscribers_group": SystemGroup.MEMBERS.value}, True),
    ("gus", "cleo", {"can_remove_subscribers_group": SystemGroup.MEMBERS.value}, False),
]
"""Who unsubscribes whom, the channel's settings, and whether that's allowed."""


async def test_who_can_unsubscribe_others(org: Organization) -> None:
    for number, (actor, target, settings, allowed) in enumerate(UNSUBSCRIBING):
        with row(actor, target, settings):
            name = f"lounge{number}"
            await org.channel(name, "ben", "cleo", "robo", "gus", **settings)
            reply = await org[actor].delete(
                SUBSCRIPTIONS, subscriptions=[name], principals=[org[target].user_id]
            )
            if allowed:
                assert reply.ok["removed"] == [name]
            else:
                reply.refused()


async def test_one_request_can_subscribe_and_unsubscribe(org: Organization) -> None:
    await org.channel("old", "ben")
    await org.channel("kept", "ben")
    ben = org["ben"]
    reply = await ben.patch(
        SUBSCRIPTIONS, delete=["old"], add=[{"name": "new", "color": "#AAbbcc"}, {"name": "kept"}]
    )
    assert reply.ok["subscribed"] == {str(ben.user_id): ["new"]}
    assert reply.ok["already_subscribed"] == {str(ben.user_id): ["kept"]}
    assert reply.ok["removed"] == ["old"]
    assert reply.ok["not_removed"] == []
    assert reply.ok["new_subscription_messages_sent"] is True
    own = (await ben.get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert [(one["name"], one["color"]) for one in own][1:] == [("new", "#aabbcc")]


TOGETHER: list[dict[str, Any]] = [
    {},
    {"delete": ["nowhere"], "add": [{"name": "x"}]},
    {"delete": ["old"], "add": [{"name": "OLD"}]},
    {"delete": ["old"], "add": [{"name": "x", "color": "blue"}]},
    {"delete": ["old"], "add": [{"name": ""}]},
]


async def test_subscribing_and_unsubscribing_fail_together(org: Organization) -> None:
    await org.channel("old", "ben")
    for parameters in TOGETHER:
        with row(parameters):
            reply = await org["ben"].patch(SUBSCRIPTIONS, **parameters)
            assert reply.status == 400
            (own,) = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
            assert own["name"] == "old"


# Personal settings


SETTINGS: list[tuple[str, Any, Any]] = [
    ("color", "#AbCdEf", "#abcdef"),
    ("color", "#abc", "#aabbcc"),
    ("color", '"#c2c2c2"', "#c2c2c2"),
    ("is_muted", True, True),
    ("pin_to_top", True, True),
    ("desktop_notifications", False, False),
    ("audible_notifications", True, True),
    ("push_notifications", True, True),
    ("email_notifications", True, True),
    ("wildcard_mentions_notify", False, False),
]
"""A setting, its new value, and what is shown."""


async def test_a_personal_channel_setting_is_stored_with_an_event(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    ann, ben = [await org[name].register() for name in ("ann", "ben")]
    for given, value, kept in SETTINGS:
        with row(given, value):
            assert (
                await org["ben"].patch(f"{SUBSCRIPTIONS}/{channel}", property=given, value=value)
            ).ok
            (own,) = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
            assert own[given] == kept
            event = (await ben.events())[0]
            assert (event["type"], event["op"], event["stream_id"]) == (
                "subscription",
                "update",
                channel,
            )
            assert (event["property"], event["value"]) == (given, kept)
            assert await ann.events() == []


@pytest.mark.parametrize(("name", "value"), [("is_muted", True), ("in_home_view", False)])
async def test_muting_has_events_under_both_names(
    org: Organization, name: str, value: bool
) -> None:
    channel = await org.channel("lounge", "ben")
    ben = await org["ben"].register()
    assert (await org["ben"].patch(f"{SUBSCRIPTIONS}/{channel}", property=name, value=value)).ok
    told = {event["property"]: event["value"] for event in await ben.events()}
    assert told == {"is_muted": True, "in_home_view": False}


async def test_an_invalid_setting_is_refused(org: Organization) -> None:
    channel = await org.channel("lounge", "ben")
    before = org.node.state.seq
    for name, value in (
        ("color", "red"),
        ("color", "#abcd"),
        ("color", True),
        ("is_muted", "yes"),
        ("is_muted", None),
        ("color", None),
        ("in_home_view", "#aaaaaa"),
        ("name", "x"),
        ("spans", True),
    ):
        one = {"stream_id": channel, "property": name, "value": value}
        good = {"stream_id": channel, "property": "pin_to_top", "value": True}
        sent = "null" if value is None else value
        with row(name, value):
            whole = {"subscription_data": [good, one]}
            (await org["ben"].post(f"{SUBSCRIPTIONS}/properties", **whole)).refused()
            reply = await org["ben"].patch(f"{SUBSCRIPTIONS}/{channel}", property=name, value=sent)
            assert reply.status == 400
            assert org.node.state.seq == before, "something was changed"


async def test_several_settings_are_changed_together(org: Organization) -> None:
    a, b = await org.channel("a", "ben"), await org.channel("b", "ben")
    data = [
        {"stream_id": a, "property": "color", "value": "#123456"},
        {"stream_id": b, "property": "is_muted", "value": True},
    ]
    assert (await org["ben"].post(f"{SUBSCRIPTIONS}/properties", subscription_data=data)).ok
    first, second = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
    assert first["color"] == "#123456"
    assert (second["is_muted"], second["in_home_view"]) == (True, False)


async def test_a_channel_s_notification_settings_can_be_reset(org: Organization) -> None:
    lounge = await org.channel("lounge", "ben")
    names = ("desktop_notifications", "wildcard_mentions_notify")
    for value in (True, None):
        data = [{"stream_id": lounge, "property": name, "value": value} for name in names]
        assert (await org["ben"].post(f"{SUBSCRIPTIONS}/properties", subscription_data=data)).ok
        (own,) = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
        assert [own[name] for name in names] == [value, value]
    path = f"{SUBSCRIPTIONS}/{lounge}"
    assert (await org["ben"].patch(path, property="push_notifications", value="null")).ok


async def test_settings_need_a_subscription(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann")
    vault = await org.channel("vault", "ann", is_private=True)
    for channel in (lounge, vault, 99):
        reply = await org["ben"].patch(
            f"{SUBSCRIPTIONS}/{channel}", property="pin_to_top", value=True
        )
        assert reply.refused()["msg"] == f"You aren't subscribed to channel {channel}."


# Reading


@pytest.mark.parametrize("wanted", [True, "partial", False])
async def test_the_own_list_includes_subscribers_on_request(
    org: Organization, wanted: bool | str
) -> None:
    await org.channel("lounge", "ben", "gus", "robo")
    await org.channel("den", "ann")
    reply = await org["ben"].get(SUBSCRIPTIONS, include_subscribers=wanted)
    (own,) = reply.ok["subscriptions"]
    expected = sorted(org[name].user_id for name in ("ben", "gus", "robo"))
    assert own.get("subscribers") == (expected if wanted else None)
    (await org["ben"].get(SUBSCRIPTIONS, include_subscribers="some")).refused(
        "REQUEST_VARIABLE_INVALID"
    )


async def test_deactivated_people_are_not_listed(org: Organization) -> None:
    channel = await org.channel("lounge", "ben", "cleo")
    await org.do(UserDeactivated(user_id=org["cleo"].user_id))
    (own,) = (await org["ben"].get(SUBSCRIPTIONS, include_subscribers=True)).ok["subscriptions"]
    assert own["subscribers"] == [org["ben"].user_id]
    assert own["subscriber_count"] == 1
    members = (await org["ben"].get(f"/streams/{channel}/members")).ok["subscribers"]
    assert members == [org["ben"].user_id]
    path = f"/users/{org['cleo'].user_id}/subscriptions/{channel}"
    assert (await org["ben"].get(path)).ok["is_subscribed"] is False


async def test_a_subscription_status_can_be_queried(org: Organization) -> None:
    lounge = await org.channel("lounge", "ben", "gus")
    vault = await org.channel("vault", "ann", is_private=True)

    async def ask(who: str, whom: int, channel: int) -> Any:
        reply = await org[who].get(f"/users/{whom}/subscriptions/{channel}")
        return reply.ok["is_subscribed"] if reply.status == 200 else reply.refused()["msg"]

    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    assert await ask("cleo", ben, lounge) is True
    assert await ask("cleo", cleo, lounge) is False
    assert await ask("gus", ben, lounge) is True
    assert (
        await ask("cleo", ben, vault) == await ask("cleo", ben, 99) == "This channel doesn't exist."
    )
    assert await ask("cleo", 999, lounge) == "This user doesn't exist."


async def test_other_people_s_channels_are_those_visible_to_the_client(org: Organization) -> None:
    lounge = await org.channel("lounge", "ben", "gus")
    den = await org.channel("den", "ben")
    vault = await org.channel("vault", "ben", is_private=True)
    await org.channel("old", "ben", is_archived=True)
    path = f"/users/{org['ben'].user_id}/channels"
    for who, expected in (
        ("ben", [lounge, den, vault]),
        ("ann", [lounge, den, vault]),
        ("cleo", [lounge, den]),
        ("gus", [lounge]),
    ):
        assert (await org[who].get(path)).ok["subscribed_channel_ids"] == expected
    (await org["ben"].get("/users/999/channels")).refused()


async def test_guests_cannot_query_subscribers_of_channels_they_are_not_in(
    org: Organization,
) -> None:
    channel = await org.channel("plaza", "ben", is_web_public=True)
    (await org["gus"].get(f"/streams/{channel}/members")).refused()
    path = f"/users/{org['ben'].user_id}/subscriptions/{channel}"
    (await org["gus"].get(path)).refused()
    await org.add("mo", Role.MODERATOR)
    assert (await org["mo"].get(f"/streams/{channel}/members")).ok["subscribers"]
