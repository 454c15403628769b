"""The changes that write people's personal records: drafts, snippets, scheduled messages, views,
topic settings, and invitations."""

from collections.abc import Iterator
from typing import Final

from tertulia.domain import names
from tertulia.imports.context import ImportContext
from tertulia.imports.records import (
    SourceDraft,
)
from tertulia.imports.values import storable
from tertulia.model import changes
from tertulia.model.changes import AnyChange
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.model.errors import Refused
from tertulia.model.invitations import Invitation
from tertulia.model.personal import NavigationView
from tertulia.model.scheduled import ScheduledMessage
from tertulia.model.user_topics import Visibility

MAX_CLIENT: Final = 100
"""Longest name of a program or an emoji, in characters."""


class PersonalRecords:
    """Makes the changes. Each is decided on the current state when it's yielded."""

    def __init__(self, context: ImportContext) -> None:
        self._context = context

    def changes(self) -> Iterator[AnyChange]:
        """Yield the changes of all personal records."""
        yield from self._drafts()
        yield from self._snippets()
        yield from self._scheduled()
        yield from self._views()
        yield from self._user_topics()
        yield from self._invitations()

    def _drafts(self) -> Iterator[AnyChange]:
        for draft in self._context.report.each(self._context.source.drafts):
            draft_id = self._context.ids.find("draft", draft.key)
            user_id = self._context.ids.find("user", draft.user)
            if draft_id is None or draft_id in self._context.state.drafts:
                continue
            made = self._draft(draft, draft_id, user_id) if user_id is not None else None
            if made is None:
                self._context.report.skip(
                    "drafts", "Its author or text isn't in the export.", draft.key
                )
                continue
            self._context.report.count("drafts")
            yield changes.DraftsCreated(user_id=made.user_id, drafts=(made,))

    def _draft(self, draft: SourceDraft, draft_id: int, user_id: int) -> SavedDraft | None:
        ids = self._context.ids
        kind, to = draft.kind, ids.several("user", draft.to)
        if kind is DraftKind.CHANNEL:
            to = ids.several("channel", draft.to)[:1]
        if not to:
            kind = DraftKind.NOTHING
        try:
            return SavedDraft(
                id=draft_id,
                user_id=user_id,
                kind=kind,
                to=() if kind is DraftKind.NOTHING else to,
                topic=topic_name(draft.topic) if kind is DraftKind.CHANNEL else "",
                content=names.message_content(storable(draft.content)),
                edited_at=self._context.checks.seconds(draft.edited_at),
            )
        except Refused:
            return None

    def _snippets(self) -> Iterator[AnyChange]:
        for source in self._context.report.each(self._context.source.snippets):
            snippet_id = self._context.ids.find("snippet", source.key)
            user_id = self._context.ids.find("user", source.user)
            if snippet_id is None or user_id is None or snippet_id in self._context.state.snippets:
                continue
            title = storable(source.title).strip()[: names.MAX_SNIPPET_TITLE].rstrip()
            content = storable(source.content).strip()[: names.MAX_MESSAGE].rstrip()
            if not title or not content:
                self._context.report.skip(
                    "saved snippets", "Its title or text is empty.", source.key
                )
                continue
            self._context.report.count("saved snippets")
            yield changes.SnippetCreated(
                user_id=user_id,
                snippet=Snippet(
                    id=snippet_id,
                    user_id=user_id,
                    title=title,
                    content=content,
                    created_at=self._context.checks.seconds(source.created_at),
                ),
            )

    def _scheduled(self) -> Iterator[AnyChange]:
        ids = self._context.ids
        for source in self._context.report.each(self._context.source.scheduled):
            user_id = ids.find("user", source.user)
            scheduled_id = ids.find("scheduled", source.key)
            if (
                scheduled_id is None
                or scheduled_id in self._context.state.tables["scheduled_messages"]
            ):
                continue
            channel_id = ids.find("channel", source.channel)
            people = ids.several("user", source.people)
            try:
                content = names.message_content(storable(source.content))
            except Refused:
                content = ""
            if user_id is None or not content or (channel_id is None and not people):
                self._context.report.skip(
                    "scheduled messages",
                    "Its author, place, or text isn't in the export.",
                    source.key,
                )
                continue
            # Its author decides about a message that was due during the move.
            missed = source.deliver_at <= self._context.now
            if missed:
                self._context.report.change(
                    "scheduled messages",
                    "It was due during the move, so it wasn't sent. Its author can choose a new"
                    " time.",
                    source.key,
                )
            self._context.report.count("scheduled messages")
            yield changes.MessageScheduled(
                user_id=user_id,
                message=ScheduledMessage(
                    id=scheduled_id,
                    user_id=user_id,
                    channel_id=channel_id,
                    topic="" if channel_id is None else topic_name(source.topic),
                    user_ids=people if channel_id is None else (),
                    content=content,
                    rendered=self._context.checks.html(content, user_id),
                    deliver_at=self._context.checks.due(source.deliver_at),
                    client=storable(source.client)[:MAX_CLIENT],
                    read_by_sender=source.read_by_sender,
                    failed=source.failed or missed,
                ),
            )

    def _views(self) -> Iterator[AnyChange]:
        for source in self._context.report.each(self._context.source.views):
            view_id = self._context.ids.find("view", source.key)
            user_id = self._context.ids.find("user", source.user)
            if (
                view_id is None
                or user_id is None
                or view_id in self._context.state.navigation_views
            ):
                continue
            try:
                view = NavigationView(
                    id=view_id,
                    user_id=user_id,
                    fragment=names.view_fragment(storable(source.fragment)),
                    is_pinned=source.is_pinned,
                    name=None if source.name is None else names.view_name(storable(source.name)),
                )
            except Refused as refusal:
                self._context.report.skip("views", str(refusal), source.fragment)
                continue
            yield changes.NavigationViewAdded(user_id=user_id, view=view)

    def _user_topics(self) -> Iterator[AnyChange]:
        for policy in self._context.report.each(self._context.source.user_topics):
            user_id = self._context.ids.find("user", policy.user)
            channel_id = self._context.ids.find("channel", policy.channel)
            if user_id is None or channel_id is None:
                continue
            topic = topic_name(policy.topic)
            known = self._context.state.tables["user_topics"]
            if (user_id, channel_id, topic.casefold()) in known:
                continue
            self._context.report.count("topic settings")
            yield changes.UserTopicChanged(
                user_id=user_id,
                channel_id=channel_id,
                topic=topic,
                visibility=policy.visibility,
                was=Visibility.INHERIT,
                at=self._context.checks.seconds(policy.changed_at),
            )

    def _invitations(self) -> Iterator[AnyChange]:
        known = {
            (invitation.address or "").casefold() for invitation in self._context.state.invitations
        }
        next_id = self._context.state.invitations.next_id()
        for source in self._context.report.each(self._context.source.invitations):
            reason = ""
            inviter = self._context.state.users.get(self._context.ids.find("user", source.inviter))
            try:
                address = names.address(source.address)
            except Refused:
                address, reason = "", "The address isn't valid."
            if inviter is None or not inviter.is_active:
                reason = "The inviter isn't an active member here."
            elif source.expires_at is not None and source.expires_at <= self._context.now:
                reason = "It expired."
            elif source.role < inviter.role:
                reason = "Its role has more permissions than the inviter's."
            elif self._context.state.user_with_address(address) is not None:
                reason = "An account with this address already exists."
            if reason or inviter is None:
                self._context.report.skip("invitations", reason, source.address)
                continue
            if address.casefold() in known:
                continue
            known.add(address.casefold())
            self._context.report.count("invitations")
            yield changes.InvitationsMade(
                invitations=(
                    Invitation(
                        id=next_id,
                        inviter_id=inviter.id,
                        address=address,
                        created_at=self._context.now,
                        expires_at=source.expires_at,
                        role=source.role,
                        channel_ids=self._context.ids.several("channel", source.channels),
                        default_channels=not source.channels,
                        nonce=self._context.secrets.nonce(),
                    ),
                )
            )
            next_id += 1


def topic_name(text: str) -> str:
    """Return a topic's name in its final form, without characters that aren't allowed."""
    plain = storable(text)
    try:
        return names.topic_name(plain)
    except Refused:
        return names.topic_name("".join(c if names.is_printable(c) else " " for c in plain))
