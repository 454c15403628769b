"""Digests: asking for them once on the organization's day, and what is in one."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct

from tertulia.domain.accounts import account_mails
from tertulia.domain.notifications import emails, rules
from tertulia.domain.notifications.emails import PUT_OFF_LONGEST, SPAN_SECONDS
from tertulia.model.mail import Mail, MailKind, Unsubscribing
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.conversation_mails import ConversationMail, ShownConversation, rendered
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.service.messages.flags import is_read
from tertulia.service.node import Node
from tertulia.service.notifications.conversations import Reader, people
from tertulia.service.notifications.mail import SETTINGS
from tertulia.store import installation, outbox, queries
from tertulia.store.database import Connection
from tertulia.store.queries import LivelyTopic

SINCE: Final = "since"
"""The fact of a mail that says from when on (UNIX seconds) what was written is in it."""
CONVERSATIONS: Final = 4
"""In one digest."""
LOOKED_AT: Final = 12
"""Of the liveliest topics that somebody hears of: those that were read are left out."""
MESSAGES: Final = 2
"""That are shown of each."""
SEARCHED: Final = 500
"""Messages of a topic among which is looked for those."""
NAMES: Final = 3
AT_ONCE: Final = 500
"""People who are looked at, and whose mails are asked for, in one step."""
KNOWN_SECONDS: Final = 3600.0
"""For so long it is remembered which topics were lively."""
_PROGRESS: Final = "digests"
"""The key of the day of the last digests, and how far they have come: a date and a user ID."""


async def ask_for_digests(node: Node, wanted: Callable[[], None]) -> None:
    """Ask for the digests of today, of everybody who was not looked at yet. Whichever nodes do it
    at once, each is asked for once. `wanted` is called when there are some to be sent."""
    while (day := emails.day_of(node.state.realm, node.clock())) is not None:
        progress = await node.store.read(installation.value, _PROGRESS)
        before = _user_in(progress, day)
        some = list(islice(emails.people_after(node.state, before), AT_ONCE))
        if not some:
            return
        mails = _mails(node, some)
        asked = partial(_asked, was=progress, now=f"{day} {some[-1]}", mails=mails, at=node.clock())
        if await node.store.write(asked) and mails:
            wanted()


def _asked(
    connection: Connection, was: str | None, now: str, mails: Sequence[Mail], at: float
) -> bool:
    """Ask for the mails, inside the transaction that is open, unless another node did already."""
    if installation.value(connection, _PROGRESS) != was:
        return False
    installation.put(connection, _PROGRESS, now)
    outbox.put_all(connection, {outbox.new_id(): mail for mail in mails}, at)
    return True


def _user_in(progress: str | None, day: str) -> int:
    date, _, user_id = (progress or "").partition(" ")
    return int(user_id) if date == day else 0


def _mails(node: Node, user_ids: list[int]) -> list[Mail]:
    state, now = node.state, node.clock()
    found: list[Mail] = []
    for user_id in user_ids:
        if emails.wants_digest(state, user_id, _seen_at(node, user_id), now):
            facts = {SINCE: str(int(now - SPAN_SECONDS))}
            site = node.config.mail_site
            found += account_mails.about(MailKind.DIGEST, state.users[user_id], site, **facts)
    return found


def _seen_at(node: Node, user_id: int) -> float:
    latest = node.delivery.presence.of(user_id)
    return 0 if latest is None else max(latest.active_at, latest.idle_at)


class _Topic(Struct, frozen=True):
    """A topic in somebody's digest."""

    lively: LivelyTopic
    messages: list[Message]


class Digests:
    """Finds the words of digests."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: tuple[float, int, list[LivelyTopic]] = (0.0, 0, [])
        """Until when it is remembered (by `Log.elapsed`) what was lively since then."""

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """The digest in words; None where there is nothing to say, where its person does not want
        it or has come back, where it was put off until the next one, and where mails do not say
        what messages do."""
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
        reader = Reader(node, user, mail.site, now)
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
        """The liveliest topics of which the user has not read something."""
        state = self._node.state
        heard = [
            one
            for one in await self._lively(since)
            if emails.hears_of(state, user.id, one.channel_id, one.key)
        ]
        found: list[_Topic] = []
        for lively in heard[:LOOKED_AT]:
            messages = await self._unread(user, lively)
            if messages:
                found.append(_Topic(lively, messages))
            if len(found) == CONVERSATIONS:
                break
        return found

    async def _lively(self, since: int) -> list[LivelyTopic]:
        elapsed, hour = self._node.log.elapsed(), since // 3600
        until, known, found = self._known
        if elapsed >= until or known != hour:
            found = await self._node.store.read(queries.lively_topics, since)
            self._known = (elapsed + KNOWN_SECONDS, hour, found)
        return found

    async def _unread(self, user: User, lively: LivelyTopic) -> list[Message]:
        """The first messages of the topic that the user has not read, and may."""
        subscription = self._node.state.subscription(user.id, lively.channel_id)
        if subscription is None:
            return []
        first_id = max(lively.first_id, self._node.state.unread_since(subscription) + 1)

        def look(connection: Connection) -> tuple[list[Message], dict[int, queries.Relation]]:
            ids = queries.ids_in_topic(
                connection, lively.channel_id, lively.key, first_id, SEARCHED
            )
            relations = queries.relations(connection, user.id, ids)
            unread = [one for one in ids if not relations[one].read][: MESSAGES * 5]
            return queries.messages(connection, unread), relations

        messages, relations = await self._node.store.read(look)
        state = self._node.state
        return [
            one
            for one in messages
            if rules.may_be_told(state, user.id, one)
            and not is_read(state, user.id, one, relations[one.id])
            and (user.id, one.sender_id) not in state.muted_users
        ][:MESSAGES]


async def _shown(reader: Reader, topic: _Topic) -> ShownConversation:
    first, lively = topic.messages[0], topic.lively
    names = people(reader, lively.sender_ids, NAMES)
    return ShownConversation(
        name=reader.conversation_name(first),
        link=reader.link_to(first),
        messages=tuple(await reader.shown(topic.messages, [one.id for one in topic.messages])),
        more=reader.words("digest_messages", count=lively.count, people=names),
    )
