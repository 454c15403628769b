"""Email notifications: queueing missed-message emails, and rendering one when it is sent."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.accounts import users
from tertulia.domain.notifications import rules
from tertulia.domain.notifications.rules import NotificationMethod, NotificationReason
from tertulia.log.log import Log
from tertulia.model.mail import Mail, MailKind, Unsubscribing
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.conversation_mails import ConversationMail, QuotedConversation, rendered
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.service.mail_in.addresses import MailAddresses
from tertulia.service.messages.flags import is_read
from tertulia.service.node import Node
from tertulia.service.notifications.conversations import MailReader, Notification
from tertulia.service.notifications.notifier import IDLE_SECONDS
from tertulia.state.state import State
from tertulia.store import message_marks, outbox, queries
from tertulia.store.database import Connection

MESSAGES = "messages"
"""The key of the email's fact that lists the IDs of the messages."""


class MailChannel:
    """Notifies people by email. `site` is the base URL of links in emails; `wake` is called when
    emails were queued."""

    method = NotificationMethod.MAIL
    interval = IDLE_SECONDS
    has_recipients = True

    def __init__(self, log: Log, site: str, wake: Callable[[], None]) -> None:
        self._log = log
        self._site = site
        self.enqueued = wake

    def reachable(self, people: BitMap) -> BitMap:
        """Return all of the people: everyone has an address."""
        return people

    def enqueue(
        self, notifications: Sequence[Notification], now: float
    ) -> Callable[[Connection], None]:
        accounts = self._log.state.users
        mails = {
            outbox.new_id(): mail
            for notification in notifications
            for mail in users.emails_to(
                MailKind.MISSED_MESSAGES,
                accounts[notification.user_id],
                self._site,
                **{MESSAGES: " ".join(map(str, notification.message_ids))},
            )
        }
        return partial(outbox.add_all, mails=mails, at=now)


def reason_now(
    state: State,
    user: User,
    message: Message,
    relation: message_marks.Relation,
    method: NotificationMethod,
) -> NotificationReason | None:
    """Return the reason for notifying the user about the message now; None if they have read it,
    can't read it, or don't want to be notified."""
    if not rules.may_notify(state, user.id, message) or is_read(state, user.id, message, relation):
        return None
    recipients = rules.recipients(state, message, {user.id: relation.flags}, method)
    return next((reason for reason, people in recipients.items() if user.id in people), None)


SHOWN: Final = 20
"""The most messages in one email: the first ones."""
BEFORE: Final = 2
"""The number of earlier messages that are shown for context..."""
BEFORE_SECONDS: Final = 86400
"""... unless they are older by more than this many seconds."""
SETTINGS: Final = "/#settings/notifications"
_ALWAYS: Final = 2
"""The value of the setting that puts the organization's name into subjects. (1, "if you have
accounts in several organizations", never applies, because a server has one.)"""
_OPENINGS: Final = {
    NotificationReason.MENTIONED: "opening_mentioned",
    NotificationReason.WILDCARD: "opening_wildcard",
    NotificationReason.FOLLOWED: "opening_followed",
    NotificationReason.CHANNEL: "opening_channel",
}


class _Known(Struct, frozen=True):
    messages: list[Message]
    relations: dict[int, message_marks.Relation]
    before: list[Message]


async def missed_channel(node: Node, mail: Mail) -> int | None:
    """Return the ID of the channel that the email's messages are in; None for direct messages and
    for other emails."""
    newest = mail.facts.get(MESSAGES, "").split()[-1:]
    messages = await node.store.read(queries.messages, list(map(int, newest))) if newest else []
    return messages[0].channel_id if messages else None


async def missed_messages(node: Node, mail: Mail, now: float) -> RenderedMail | None:
    """Return the rendered email; None if there is nothing left to notify about."""
    user = node.state.users.get(mail.about)
    if user is None or not user.is_active:
        return None
    ids = [int(text) for text in mail.facts[MESSAGES].split()]

    def look(connection: Connection) -> _Known:
        messages = queries.messages(connection, ids)
        before = queries.before_in_conversation(connection, messages[0], BEFORE) if messages else []
        return _Known(messages, message_marks.relations(connection, user.id, ids), before)

    known = await node.store.read(look)
    missed: list[Message] = []
    reasons: set[NotificationReason] = set()
    for message in known.messages:
        reason = reason_now(
            node.state, user, message, known.relations[message.id], NotificationMethod.MAIL
        )
        if reason is not None:
            missed.append(message)
            reasons.add(reason)
    if not missed:
        return None
    reader = MailReader(node, user, mail.site, now)
    opening = _opening(
        node, reader, missed[0], next(reason for reason in NotificationReason if reason in reasons)
    )
    content = await _conversation_mail(node, reader, mail, missed, known.before, opening)
    return rendered(content, node.config.address_host)


async def _conversation_mail(
    node: Node,
    reader: MailReader,
    mail: Mail,
    missed: Sequence[Message],
    earlier: Sequence[Message],
    opening: str,
) -> ConversationMail:
    state, user, words = node.state, reader.user, reader.words
    organization, newest = state.realm.name, missed[-1]
    unsubscribe = node.links.unsubscribing(mail.site, user.id, Unsubscribing.MISSED)
    common: dict[str, Any] = {
        "to": user.address,
        "language": reader.language,
        "unsubscribe": unsubscribe,
        "unsubscribe_words": words("unsubscribe"),
        "organization": organization,
        "site": reader.site,
    }
    why = words("why", settings=reader.site + SETTINGS)
    by_realm = not state.realm.message_content_allowed_in_email_notifications
    if by_realm or not reader.settings.message_content_in_email_notifications:
        return ConversationMail(
            **common,
            title=_title(reader, organization, words("hidden_subject")),
            opening=words("hidden", count=len(missed), organization=organization),
            conversations=(),
            link=reader.site,
            button=words("hidden_button", organization=organization),
            endings=(words("hidden_by_realm" if by_realm else "hidden_by_self"), why),
            list_id="messages",
        )
    before = [
        message
        for message in earlier
        if message.sent_at >= missed[0].sent_at - BEFORE_SECONDS
        and rules.may_notify(state, user.id, message)
        and (user.id, message.sender_id) not in state.muted_users
    ]
    shown = missed[:SHOWN]
    name = reader.conversation_name(newest)
    reply_to = MailAddresses(node.config, node.vault).of_answer(state, user, newest, node.clock())
    conversation = QuotedConversation(
        name=name,
        link=reader.link_to(shown[0]),
        messages=tuple(await reader.render([*before, *shown], [message.id for message in missed])),
        more=words("more", count=len(missed) - SHOWN) if len(missed) > SHOWN else "",
    )
    direct = newest.direct_id is not None
    return ConversationMail(
        **common,
        title=_title(reader, organization, name),
        opening=opening,
        conversations=(conversation,),
        link=reader.link_to(shown[0]),
        button=words("button"),
        endings=(
            words("reply") if reply_to else words("no_reply", organization=organization),
            why,
        ),
        list_id="direct" if direct else f"channel-{newest.channel_id}",
        thread=f"{newest.direct_id}" if direct else f"{newest.channel_id}/{newest.conversation[1]}",
        reply_to=reply_to,
        pictures=reader.pictures,
    )


def _title(reader: MailReader, organization: str, text: str) -> str:
    if reader.settings.realm_name_in_email_notifications_policy == _ALWAYS:
        return f"[{organization}] {text}"
    return text


def _opening(node: Node, reader: MailReader, message: Message, reason: NotificationReason) -> str:
    """Return the sentence that explains why the email was sent."""
    state = node.state
    key = _OPENINGS.get(reason, "opening_direct")
    if message.direct_id is not None and len(state.directs[message.direct_id].members) > 2:
        key = "opening_group"
    return reader.words(key, name=reader.name_of(message.sender_id), organization=state.realm.name)
