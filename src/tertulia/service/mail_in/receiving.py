"""Turning an email into a message."""

import contextlib
import hashlib
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import channels
from tertulia.domain.messages import attachments
from tertulia.domain.messages.sending import ToChannel as ToTopic
from tertulia.domain.messages.sending import ToPeople, check_topic
from tertulia.integrations.payloads import harmless, short
from tertulia.model.channels import TopicsPolicy
from tertulia.model.errors import NoSuchMessage, Refused, Unavailable, WildcardNotAllowed
from tertulia.model.numbers import counted
from tertulia.model.users import User
from tertulia.service.files import uploads
from tertulia.service.mail_in.addresses import ChannelAddress, MailOptions, MailTarget, ReplyAddress
from tertulia.service.messages import sending
from tertulia.service.node import Caller, Node
from tertulia.store import queries
from tertulia.store.uploads import ArrivedFile
from tertulia.workers import (
    FILES,
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    WorkerTask,
)


class MailFile(Struct, frozen=True, kw_only=True):
    """An attachment."""

    name: str
    content_type: str
    size: int
    """Bytes."""


class ReceivedMail(Struct, frozen=True, kw_only=True):
    """A parsed email."""

    message_id: str
    """The Message-ID header; may be empty."""
    title: str
    sender: str
    """The sender in the email's header, which isn't verified."""
    is_auto_reply: bool
    """Whether it is an automatic reply, such as an absence note or a bounce."""
    is_automatic: bool
    """Whether a program sent it."""
    hops: int
    """Number of servers that forwarded it."""
    text: str
    """The email's text as Markdown."""
    files: tuple[MailFile, ...]


T = TypeVar("T")

MAX_SECONDS: Final = 5.0
"""The most processor time in seconds for one email. 25 MiB take one or two seconds."""
PATIENCE: Final = 60.0
"""Seconds until parsing is given up, including the time in the queue."""
_WORK: Final = "tertulia.service.mail_in.mail_work"
READ: Final[WorkerTask[ReceivedMail]] = WorkerTask(
    f"{_WORK}:read", ReceivedMail, load=f"{_WORK}:load"
)
UNPACK: Final[WorkerTask[None]] = WorkerTask(f"{_WORK}:unpack", type(None), load=f"{_WORK}:load")


class TakesTooLong(Refused):
    def __init__(self) -> None:
        super().__init__("This email takes too long to process.")


async def read_mail(path: Path, *, quotes: bool, footers: bool, prefer_html: bool) -> ReceivedMail:
    """Parse the email in a file. Raise Refused (TakesTooLong) if that fails, and Unavailable if too
    many are waiting."""
    return await _done(READ, str(path), quotes, footers, prefer_html)


async def unpack_mail(place: Path, into: Sequence[Path]) -> None:
    """Write the email's attachments to these files."""
    await _done(UNPACK, str(place), [str(path) for path in into])


async def _done(job: WorkerTask[T], *arguments: object) -> T:
    try:
        return await FILES.call(job, *arguments, allowance=TaskBudget(MAX_SECONDS, PATIENCE))
    except TaskFailed:
        raise Refused("This email couldn't be read.") from None
    except TaskLimitExceeded:
        raise TakesTooLong from None
    except TaskUnavailable as error:
        raise Unavailable(
            "Too many emails are waiting to be processed. Try again later."
        ) from error


logger = logging.getLogger("tertulia.mail_in")

MAX_FILES: Final = 20
"""The most attachments that are kept. The message says how many were left out."""
MAX_HOPS: Final = 50
"""The most hops of an email that is accepted. More hops mean a loop."""
CLIENT: Final = "mail"
_QUEUE: Final = "mail"
_ANSWERING: Final = re.compile(
    r"(?:(?:re|aw|fwd?|wg|sv|rv|tr|antw|ref)\s*(?:\[\d+\])?\s*:\s*)+", re.I
)
UNTITLED: Final = "(no subject)"


async def receive(node: Node, target: MailTarget, path: Path) -> int | None:
    """Send the email in a file as a message, and return the message's ID; None if it's dropped,
    because no person wrote it. Repeating it changes nothing. Raise Refused with a sentence for the
    sender, and Unavailable if it can be retried."""
    sender = _sender(node, target)
    options = target.options if isinstance(target, ChannelAddress) else MailOptions()
    mail = await read_mail(
        path,
        quotes=options.include_quotes,
        footers=options.include_footer,
        prefer_html=options.prefer_html,
    )
    unwanted = _unwanted(node, target, mail)
    if unwanted:
        logger.info("dropped an email", extra={"fields": {"reason": unwanted}})
        return None
    caller = Caller(node=node, user_id=sender.id)
    to = await _destination(caller, target, mail)
    mark = f"{mail.message_id}\0{target!r}" if mail.message_id else ""
    attempt = hashlib.sha256(mark.encode()).hexdigest()[:32] if mark else None
    before = sending.sent_before(caller, to, _QUEUE, attempt, "") if attempt else None
    if before is not None:
        return before
    files = _Kept()
    try:
        await _keep(node, _keeper(target, sender), path, mail.files, files)
        content = _content(mail, options, files.lines, is_own=isinstance(target, ReplyAddress))
        if not content:
            raise Refused("This email is empty.")
        try:
            return await _sent(caller, to, content, attempt, files)
        except WildcardNotAllowed:
            # Send it without the mentions.
            return await _sent(caller, to, harmless(content), attempt, files)
    finally:
        # Refused email must not use up anyone's storage. If the same email is delivered twice at
        # the same time, the message has the files of the first.
        if files.ids:
            await node.log.submit(None, attachments.remove_unlinked, frozenset(files.ids))


def _sender(node: Node, target: MailTarget) -> User:
    """Return the sender of the message. Raise Refused if the sender, or the creator of the address,
    can no longer send messages there."""
    state = node.state
    if isinstance(target, ReplyAddress):
        return _active(node, target.user_id)
    creator = _active(node, target.creator_id)
    channel = channels.existing_channel(state, creator, target.channel_id)
    permissions.require(
        channel_access.may_send_to(state, creator, channel),
        "You don't have permission to send messages to this channel.",
    )
    sender = _active(node, target.sender_id)
    owner = sender.bot.owner_id if sender.bot is not None else None
    if sender.id != creator.id and owner != creator.id and not sender.is_system_bot:
        raise Refused("This address now belongs to someone else.")
    return sender


def _active(node: Node, user_id: int) -> User:
    user = node.state.users.get(user_id)
    if user is None or not user.is_active or node.state.realm.deactivated:
        raise Refused("This account is deactivated.")
    return user


def _unwanted(node: Node, target: MailTarget, mail: ReceivedMail) -> str:
    """Return the reason for dropping the email; empty if it's accepted."""
    if mail.is_auto_reply:
        return "automatic reply"
    if isinstance(target, ReplyAddress) and mail.is_automatic:
        return "sent by a program"
    if mail.hops > MAX_HOPS:
        return "mail loop"
    ours = node.config.mail_from or f"noreply@{node.config.address_host}"
    host = ours.rpartition("<")[2].rstrip(">").lower()
    if host and host in mail.sender.lower():
        return "sent by this server"
    return ""


async def _destination(
    caller: Caller, target: MailTarget, mail: ReceivedMail
) -> ToTopic | ToPeople:
    state = caller.state
    if isinstance(target, ChannelAddress):
        channel = state.channels[target.channel_id]
        has_topics = channel.topics_policy is not TopicsPolicy.EMPTY_ONLY
        topic = _topic(mail.title) if has_topics else ""
        # The bot can create topics anywhere, but the address's creator may not.
        check_topic(state, state.users[target.creator_id], channel, topic)
        return sending.to_topic(target.channel_id, topic)
    messages = await caller.node.store.read(
        lambda connection: queries.messages(connection, [target.message_id])
    )
    message = next(iter(messages), None)
    if message is None:
        raise NoSuchMessage
    if message.direct_id is not None:
        members = state.directs[message.direct_id].members
        if caller.user.id not in members:
            raise NoSuchMessage
        return sending.to_people(sorted(set(members) - {caller.user.id}) or [caller.user.id])
    channel_id = message.channel_id
    if channel_id is None or not channel_access.sees_channel(
        state, caller.user, state.channels[channel_id]
    ):
        raise NoSuchMessage
    return sending.to_topic(channel_id, message.topic or "")


def _topic(title: str) -> str:
    text = _ANSWERING.sub("", "".join(filter(names.is_plain, title)), count=1)
    return short(" ".join(text.split()), names.MAX_TOPIC) or UNTITLED


def _keeper(target: MailTarget, sender: User) -> int:
    """Return the ID of the attachments' owner: the message's sender, or the address's creator if
    one of the server's bots sends the message."""
    if isinstance(target, ChannelAddress) and sender.is_system_bot:
        return target.creator_id
    return sender.id


class _Kept(Struct):
    """Stored attachments."""

    lines: list[str] = []
    """The lines of the message that link the attachments."""
    ids: list[int] = []


async def _keep(
    node: Node, keeper_id: int, path: Path, files: tuple[MailFile, ...], kept: _Kept
) -> None:
    """Store the attachments as the user's uploads, and add them to `kept`."""
    most = node.config.max_file_upload_size_mib * 1024 * 1024
    chosen = files[:MAX_FILES]
    with contextlib.ExitStack() as open_files:
        drafts = []
        for _ in chosen:
            draft = node.uploads.begin()
            open_files.callback(draft.discard)
            drafts.append(draft)
        if drafts:
            await unpack_mail(path, [draft.arriving.path for draft in drafts])
        for file, draft in zip(chosen, drafts, strict=True):
            size = draft.finish()
            name = attachments.display_name(file.name).replace("[", "(").replace("]", ")")
            if size > most:
                kept.lines.append(f"{name} (too large to be kept)")
                continue
            arrived = ArrivedFile(
                name=file.name, content_type=file.content_type, size=size, arriving=draft.arriving
            )
            attachment = await uploads.store_upload(node, keeper_id, arrived)
            kept.ids.append(attachment.id)
            kept.lines.append(f"[{name}](/user_uploads/{attachment.path})")
    if len(files) > MAX_FILES:
        kept.lines.append(f"… ({counted(len(files) - MAX_FILES, 'more file')})")


def _content(mail: ReceivedMail, options: MailOptions, links: list[str], *, is_own: bool) -> str:
    # Only people's own replies can mention others.
    text = mail.text if is_own else harmless(mail.text)
    head = f"**From:** {harmless(mail.sender)}\n\n" if options.show_sender else ""
    foot = "\n".join(links)
    room = names.MAX_MESSAGE - len(head) - len(foot) - 2
    text = short(text.replace("\0", ""), max(room, 1)) if text else ""
    return (head + "\n\n".join(part for part in (text, foot) if part)).strip()


async def _sent(
    caller: Caller, to: ToTopic | ToPeople, content: str, attempt: str | None, files: _Kept
) -> int:
    sent = await sending.send_message(
        caller,
        to,
        content,
        client=CLIENT,
        read_by_sender=True,
        queue_id=_QUEUE if attempt else None,
        local_id=attempt,
        files=files.ids,
        identity="" if attempt else None,
    )
    return sent.message_id
