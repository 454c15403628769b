"""Digest emails: queueing them on the digest day, and rendering one."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct

from tertulia.domain.accounts import users
from tertulia.domain.notifications import emails, rules
from tertulia.domain.notifications.emails import PUT_OFF_LONGEST, SPAN_SECONDS
from tertulia.model.mail import Mail, MailKind, Unsubscribing
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.conversation_mails import ConversationMail, QuotedConversation, rendered
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.service.messages.flags import is_read
from tertulia.service.node import Node
from tertulia.service.notifications.conversations import MailReader, sender_names
from tertulia.service.notifications.mail import SETTINGS
from tertulia.store import installation, message_marks, outbox, queries, topics
from tertulia.store.database import Connection
from tertulia.store.topics import LivelyTopic

SINCE: Final = "since"
"""The key of the email's fact that has the start of the period, in UNIX seconds."""
CONVERSATIONS: Final = 4
"""The most conversations in a digest."""
LOOKED_AT: Final = 12
"""The number of the most active topics that are considered. Topics without unread messages are
skipped."""
MESSAGES: Final = 2
"""The most messages shown of each conversation."""
SEARCHED: Final = 500
"""The number of a topic's messages that are searched for unread ones."""
NAMES: Final = 3
BATCH_SIZE: Final = 500
"""The number of people per step."""
KNOWN_SECONDS: Final = 3600.0
"""The number of seconds for which the list of active topics is cached."""
_PROGRESS: Final = "digests"
"""The key of the progress: a date and the last user ID."""


async def ask_for_digests(node: Node, wake: Callable[[], None]) -> None:
    """Queue today's digests for everyone who hasn't been considered yet. Several nodes can do this
    at the same time; each digest is queued once. `wake` is called when emails were queued."""
    while (day := emails.day_of(node.state.realm, node.clock())) is not None:
        progress = await node.store.read(installation.value, _PROGRESS)
        before = _user_in(progress, day)
        some = list(islice(emails.accounts_after(node.state, before), BATCH_SIZE))
        if not some:
            return
        mails = _mails(node, some)
        enqueue = partial(
            _enqueue, was=progress, now=f"{day} {some[-1]}", mails=mails, at=node.clock()
        )
        if await node.store.write(enqueue) and mails:
            wake()


def _enqueue(
    connection: Connection, was: str | None, now: str, mails: Sequence[Mail], at: float
) -> bool:
    """Queue the emails in the open transaction. Return False if another node already did."""
    if installation.value(connection, _PROGRESS) != was:
        return False
    installation.put(connection, _PROGRESS, now)
    outbox.add_all(connection, {outbox.new_id(): mail for mail in mails}, at)
    return True


def _user_in(progress: str | None, day: str) -> int:
    date, _, user_id = (progress or "").partition(" ")
    return int(user_id) if date == day else 0


def _mails(node: Node, user_ids: list[int]) -> list[Mail]:
    state, now = node.state, node.clock()
    mails: list[Mail] = []
    for user_id in user_ids:
        if emails.wants_digest(state, user_id, _seen_at(node, user_id), now):
            facts = {SINCE: str(int(now - SPAN_SECONDS))}
            site = node.config.mail_site
            mails += users.emails_to(MailKind.DIGEST, state.users[user_id], site, **facts)
    return mails


def _seen_at(node: Node, user_id: int) -> float:
    latest = node.delivery.presence.of(user_id)
    return 0 if latest is None else max(latest.active_at, latest.idle_at)


class _Topic(Struct, frozen=True):
    """A topic in a digest."""

    lively: LivelyTopic
    messages: list[Message]


class Digests:
    """Renders digests."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: tuple[float, int, list[LivelyTopic]] = (0.0, 0, [])
        """The time when the cache expires (by `Log.elapsed`), its hour, and the active topics."""

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """Return the rendered digest. Return None if it's empty, if the user doesn't want it or
        has come back, if it was postponed until the next one, and if emails must not contain
        messages."""
        node = self._node
        state, user, since = node.state, node.state.users.get(mail.about), int(mail.facts[SINCE])
        if (
            user is None
            or not emails.wants_digest(state, user.id, _seen_at(node, user.id), now)
            or now - since > SPAN_SECONDS + PUT_OFF_LONGEST
            or not state.settings[user.id].message_content_in_email_notifications
            or not state.realm.message_content_allowed_in_email_notifications
        ):
            return None
        topics = await self._topics(user, since)
        if not topics:
            return None
        reader = MailReader(node, user, mail.site, now)
        conversations = [await _shown(reader, topic) for topic in topics]
        words, organization = reader.words, state.realm.name
        digest = ConversationMail(
            to=user.address,
            language=reader.language,
            title=words("digest_subject", organization=organization),
            opening=words("digest_opening", name=user.full_name, organization=organization),
            conversations=tuple(conversations),
            link=reader.site,
            button=words("hidden_button", organization=organization),
            endings=(words("digest_why", settings=reader.site + SETTINGS),),
            unsubscribe=node.links.unsubscribing(mail.site, user.id, Unsubscribing.DIGEST),
            unsubscribe_words=words("unsubscribe"),
            organization=organization,
            site=reader.site,
            list_id="digest",
            pictures=reader.pictures,
        )
        return rendered(digest, node.config.address_host)

    async def _topics(self, user: User, since: int) -> list[_Topic]:
        """Return the most active topics with messages that the user hasn't read."""
        state = self._node.state
        heard = [
            topic
            for topic in await self._lively(since)
            if emails.includes_topic(state, user.id, topic.channel_id, topic.key)
        ]
        topics: list[_Topic] = []
        for lively in heard[:LOOKED_AT]:
            messages = await self._unread(user, lively)
            if messages:
                topics.append(_Topic(lively, messages))
            if len(topics) == CONVERSATIONS:
                break
        return topics

    async def _lively(self, since: int) -> list[LivelyTopic]:
        elapsed, hour = self._node.log.elapsed(), since // 3600
        until, known, lively = self._known
        if elapsed >= until or known != hour:
            lively = await self._node.store.read(topics.lively_topics, since)
            self._known = (elapsed + KNOWN_SECONDS, hour, lively)
        return lively

    async def _unread(self, user: User, lively: LivelyTopic) -> list[Message]:
        """Return the topic's first messages that the user can read and hasn't read."""
        subscription = self._node.state.subscription(user.id, lively.channel_id)
        if subscription is None:
            return []
        first_id = max(lively.first_id, self._node.state.unread_since(subscription) + 1)

        def look(connection: Connection) -> tuple[list[Message], dict[int, message_marks.Relation]]:
            ids = topics.ids_in_topic(connection, lively.channel_id, lively.key, first_id, SEARCHED)
            relations = message_marks.relations(connection, user.id, ids)
            unread = [relation_id for relation_id in ids if not relations[relation_id].read][
                : MESSAGES * 5
            ]
            return queries.messages(connection, unread), relations

        messages, relations = await self._node.store.read(look)
        state = self._node.state
        return [
            message
            for message in messages
            if rules.may_notify(state, user.id, message)
            and not is_read(state, user.id, message, relations[message.id])
            and (user.id, message.sender_id) not in state.muted_users
        ][:MESSAGES]


async def _shown(reader: MailReader, topic: _Topic) -> QuotedConversation:
    first, lively = topic.messages[0], topic.lively
    names = sender_names(reader, lively.sender_ids, NAMES)
    return QuotedConversation(
        name=reader.conversation_name(first),
        link=reader.link_to(first),
        messages=tuple(
            await reader.render(topic.messages, [message.id for message in topic.messages])
        ),
        more=reader.words("digest_messages", count=lively.count, people=names),
    )
