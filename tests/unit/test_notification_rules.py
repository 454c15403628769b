"""Who is notified about a message: the same cases that test the web client."""

import json
from pathlib import Path
from typing import Any

import pytest

from tertulia.domain.notifications.rules import NotificationMethod, all_recipients, recipients
from tertulia.model.channels import Channel, Subscription
from tertulia.model.messages import DirectConversation, Flag, Message
from tertulia.model.personal import MutedUser
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import PersonalSettings, User
from tertulia.state.state import State

CASES = json.loads(
    (Path(__file__).parents[2] / "web" / "src" / "data" / "notificationCases.json").read_text()
)
ME, OTHER, MUTED = 11, 12, 13
SENDERS = {"me": ME, "muted": MUTED}
FLAGS = {
    "mentioned": Flag.MENTIONED,
    "stream_wildcard_mentioned": Flag.CHANNEL_WILDCARD_MENTIONED,
    "topic_wildcard_mentioned": Flag.TOPIC_WILDCARD_MENTIONED,
    "has_alert_word": Flag.HAS_ALERT_WORD,
}


def stage(case: dict[str, Any], other_way: str = "") -> State:
    """The state for a case. Its desktop settings are stored as those of another method if one is
    named."""

    def named(values: dict[str, Any]) -> dict[str, Any]:
        def name(text: str) -> str:
            if not other_way:
                return text
            if text == "enable_desktop_notifications":
                return f"enable_offline_{other_way}_notifications"
            return text.replace("desktop_notifications", f"{other_way}_notifications")

        return {name(key).replace("stream", "channel"): one for key, one in values.items()}

    state = State()
    settings = named(case.get("settings", {}))
    for user_id in (ME, OTHER, MUTED):
        state.users.put(User(id=user_id, address=f"u{user_id}@example.com", full_name="U"))
        state.settings.put(PersonalSettings(user_id=user_id))
    state.channels.put(Channel(id=7, name="tea", created_at=0))
    own = Subscription(channel_id=7, user_id=ME, spans=((0, None),), color="#000000")
    state.subscriptions.put(own)
    # Changed after the messages exist, as people do.
    state.settings.put(PersonalSettings(user_id=ME, **settings))
    channel = named(case.get("channel", {}))
    state.subscriptions.put(
        Subscription(channel_id=7, user_id=ME, spans=own.spans, color=own.color, **channel)
    )
    if policy := case.get("policy"):
        topic = UserTopic(
            user_id=ME, channel_id=7, key="x", name="x", visibility=Visibility(policy), changed_at=0
        )
        state.user_topics.put(topic)
    state.muted_users.put(MutedUser(user_id=ME, muted_id=MUTED, since=0))
    members = (ME,) if case.get("sender") == "me" else (ME, OTHER)
    state.directs.put(DirectConversation(id=2, members=members))
    return state


def notified_because(case: dict[str, Any], state: State, way: NotificationMethod) -> str | None:
    """Why someone is notified, or None."""
    place: dict[str, Any] = (
        {"direct_id": 2} if case.get("direct") else {"channel_id": 7, "topic": "X"}
    )
    sender_id = SENDERS.get(case.get("sender", ""), OTHER)
    message = Message(id=5, sender_id=sender_id, sent_at=0, **place)
    flags = Flag(0)
    for name in case.get("flags", ()):
        flags |= FLAGS[name]
    found = recipients(state, message, {ME: flags} if flags else {}, way)
    people = [one for some in found.values() for one in some]
    assert len(people) == len(set(people)), "nobody is told for two reasons"
    assert (ME in all_recipients(found)) == (ME in people)
    return next((reason.value for reason, some in found.items() if ME in some), None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_message(case: dict[str, Any]) -> None:
    assert notified_because(case, stage(case), NotificationMethod.DESKTOP) == case["told"]
    for way, name in ((NotificationMethod.MAIL, "email"), (NotificationMethod.PUSH, "push")):
        # Alert words notify people who received the message, and nobody else.
        wanted = None if case["told"] == "alerted" else case["told"]
        assert notified_because(case, stage(case, name), way) == wanted


def test_bots_and_deactivated_people_are_not_notified() -> None:
    case = {"name": "", "channel": {"desktop_notifications": True}}
    state = stage(case)
    assert notified_because(case, state, NotificationMethod.DESKTOP)
    state.subscriptions.put(
        Subscription(
            channel_id=7,
            user_id=ME,
            spans=((0, 3),),
            color="#000000",
            desktop_notifications=True,
        )
    )
    assert not notified_because(case, state, NotificationMethod.DESKTOP)
