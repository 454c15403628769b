"""Events of accounts that are created, changed, deactivated, or reactivated."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from tertulia.model.changes import UserChanged, UserCreated, UserDeactivated, UserReactivated
from tertulia.model.users import Named, User
from tertulia.state.folds import revised
from tertulia.wire.api.bots.objects import (
    BotAddEvent,
    BotObject,
    BotView,
    administers_bot,
    bot_events,
    bot_object,
    bot_view,
    decode_bot,
)
from tertulia.wire.api.channels.objects import excluded
from tertulia.wire.api.channels.subscription_events import PeerAddEvent, PeerRemoveEvent
from tertulia.wire.api.events import Event
from tertulia.wire.api.groups.events import (
    groups_known,
    holders_changed,
    members_added,
    members_removed,
    named_in_sight,
)
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, projected
from tertulia.wire.api.settings import (
    ExportConsentEvent,
    LegacyEvents,
    export_consent,
    legacy_events,
    own_setting_events,
)
from tertulia.wire.api.users import account_events
from tertulia.wire.api.users.account_events import (
    AccountView,
    PersonActivity,
    PersonBotOwner,
    PersonDeleted,
    PersonFullName,
    PersonJoined,
    PersonRole,
    PersonStub,
    PersonTimezone,
    UserUpdateEvent,
    account_view,
    wants_stand_ins,
)
from tertulia.wire.api.users.objects import api_email, date_joined
from tertulia.wire.api.users.roles import OwnView, own_events, own_view
from tertulia.wire.api.visibility import sees_subscribers, sees_user


class _CreatedView(NamedTuple):
    account: AccountView | None
    stand_ins: bool
    bot: BotObject | None
    consent: bool | None


def _created_view(
    context: ProjectionContext, change: UserCreated, viewer: Viewer
) -> Hashable | None:
    state, user = context.state, context.state.users[change.user.id]
    if viewer.user.id == user.id:
        return None  # The user's own queues are newer.
    bot = None
    if administers_bot(state, viewer.user, user):
        was = account_events.as_it_was(state, change.user)
        bot = bot_object(state, viewer.user, was, context.unsealed)
    return _CreatedView(
        account_view(context, user, viewer),
        wants_stand_ins(viewer),
        bot,
        export_consent(context, user, viewer) if change.user.is_active else None,
    )


def _created(context: ProjectionContext, change: UserCreated, view: Any) -> Iterable[Event]:
    if view.account is not None:
        user = account_events.as_it_was(context.state, change.user)
        yield account_events.added(context, user, view.account)
    elif view.stand_ins:
        yield account_events.unknown(context, change.user.id)
    if change.user.is_active:  # Imported accounts may be inactive.
        yield from members_added(change.group_ids, change.user.id)  # Everyone can see all members.
    if view.bot is not None:
        yield BotAddEvent(bot=view.bot)
    yield from _consent_events(change.user.id, view.consent)


def _consent_events(user_id: int, consent: bool | None) -> Iterable[Event]:
    if consent is not None:
        yield ExportConsentEvent(user_id=user_id, consented=consent)


class _ChangedView(NamedTuple):
    account: AccountView | None
    email_shown: bool
    bot: BotView | None
    own: OwnView | None
    legacy: LegacyEvents | None
    """Only for the account's owner, if the time zone changed: it's also a setting."""


def _changed_view(context: ProjectionContext, change: UserChanged, viewer: Viewer) -> Hashable:
    user = context.state.users[change.user_id]
    has_new_timezone = viewer.user.id == change.user_id and "timezone" in change.values
    return _ChangedView(
        account=account_view(context, user, viewer),
        email_shown=account_events.is_shown_to_all(context.state, user),
        bot=bot_view(context, change, viewer),
        own=own_view(context, change, viewer),
        legacy=legacy_events(viewer) if has_new_timezone else None,
    )


def _changed(context: ProjectionContext, change: UserChanged, view: Any) -> Iterable[Event]:
    user_id = change.user_id
    if view.legacy is not None:
        zone = change.values["timezone"]
        yield from own_setting_events(context, user_id, view.legacy, "timezone", zone)
    if view.account is not None:
        yield from _account_changed(context, change, view.account, email_shown=view.email_shown)
    yield from members_removed(change.left, user_id)
    yield from members_added(change.joined, user_id)
    if view.bot is not None:
        yield from bot_events(change, view.bot)
    if view.own is not None:
        yield from own_events(context, view.own)


def _account_changed(
    context: ProjectionContext, change: UserChanged, account: AccountView, *, email_shown: bool
) -> Iterable[Event]:
    state, values = context.state, change.values
    user = account_events.as_it_was(state, revised(state.users[change.user_id], values))
    if "is_deleted" in values:
        yield UserUpdateEvent(person=PersonDeleted(user_id=user.id))
    if "full_name" in values:
        name = PersonFullName(user_id=user.id, full_name=user.full_name)
        yield UserUpdateEvent(person=name)
    if "address" in values:
        if account.address:
            yield account_events.delivery_email(user, account)
        if email_shown:
            yield account_events.email(context, user)
    if "joined_at" in values:
        yield UserUpdateEvent(person=PersonJoined(user_id=user.id, date_joined=date_joined(user)))
    if "is_placeholder" in values:
        stub = PersonStub(user_id=user.id, is_imported_stub=user.is_placeholder)
        yield UserUpdateEvent(person=stub)
    if "timezone" in values:
        address = api_email(state, user, context.host)
        zone = PersonTimezone(user_id=user.id, email=address, timezone=user.timezone)
        yield UserUpdateEvent(person=zone)
    if _has_new_picture(user, values, account):
        yield account_events.avatar(user, account)
    if "role" in values:
        yield UserUpdateEvent(person=PersonRole(user_id=user.id, role=int(values["role"])))
    if "bot" in values:
        owner_id = decode_bot(values["bot"]).owner_id
        if owner_id is not None and owner_id != decode_bot(change.was["bot"]).owner_id:
            yield UserUpdateEvent(person=PersonBotOwner(user_id=user.id, bot_owner_id=owner_id))


def _has_new_picture(user: User, values: Mapping[str, Any], account: AccountView) -> bool:
    """Whether the viewer sees another picture, or one drawn from another name."""
    if not values.keys().isdisjoint({"avatar_source", "avatar_version"}):
        return True
    by_address = user.avatar_source == "G" and account.address
    drawn = user.avatar_source != "U" and not by_address
    return ("address" in values and by_address) or ("full_name" in values and drawn)


class _ActivityView(NamedTuple):
    sees: bool
    channel_ids: tuple[int, ...]
    group_ids: tuple[int, ...]
    named: Named
    consent: bool | None


def _activity_view(
    context: ProjectionContext, change: UserDeactivated | UserReactivated, viewer: Viewer
) -> _ActivityView:
    state = context.state
    user = state.users[change.user_id]
    return _ActivityView(
        sees=sees_user(context, viewer.user, user),
        channel_ids=_lists_seen(context, change, viewer),
        group_ids=groups_known(change.group_ids, change.deactivated_groups, viewer),
        named=named_in_sight(context, change.named, change.deactivated_groups, viewer),
        consent=export_consent(context, user, viewer),
    )


def _lists_seen(
    context: ProjectionContext, change: UserDeactivated | UserReactivated, viewer: Viewer
) -> tuple[int, ...]:
    """Return the channels whose subscribers the viewer can see; empty for the account itself, since
    these events are about other subscribers."""
    if viewer.user.id == change.user_id:
        return ()
    state, user = context.state, viewer.user
    return tuple(
        channel_id
        for channel_id in change.channel_ids
        if not excluded(state.channels[channel_id], viewer.registration)
        and sees_subscribers(context, user, state.channels[channel_id])
    )


def _deactivated(context: ProjectionContext, change: UserDeactivated, view: Any) -> Iterable[Event]:
    user_id = change.user_id
    if view.channel_ids:
        yield PeerRemoveEvent(stream_ids=list(view.channel_ids), user_ids=[user_id])
    yield from members_removed(view.group_ids, user_id)
    yield from holders_changed(context, view.named)
    if view.sees:
        yield UserUpdateEvent(person=PersonActivity(user_id=user_id, is_active=False))


def _reactivated(context: ProjectionContext, change: UserReactivated, view: Any) -> Iterable[Event]:
    user_id = change.user_id
    if view.sees:
        yield UserUpdateEvent(person=PersonActivity(user_id=user_id, is_active=True))
    yield from members_added(view.group_ids, user_id)
    yield from holders_changed(context, view.named)
    if view.channel_ids:
        yield PeerAddEvent(stream_ids=list(view.channel_ids), user_ids=[user_id])
    yield from _consent_events(user_id, view.consent)


PROJECTIONS: Final[Projections] = (
    projected(UserCreated, _created_view, _created),
    projected(UserChanged, _changed_view, _changed),
    projected(UserDeactivated, _activity_view, _deactivated),
    projected(UserReactivated, _activity_view, _reactivated),
)
