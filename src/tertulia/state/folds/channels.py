"""Folds of channels and subscriptions."""

import msgspec

from tertulia.model import changes
from tertulia.model.channels import Subscription
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.ChannelCreated)
def _(state: State, change: changes.ChannelCreated) -> None:
    state.channels.put(change.channel)


@FOLDS.of(changes.ChannelChanged)
def _(state: State, change: changes.ChannelChanged) -> None:
    state.channels.put(revised(state.channels[change.channel_id], change.values))


@FOLDS.of(changes.Subscribed)
def _(state: State, change: changes.Subscribed) -> None:
    ever = state.subscriptions.of_channel[change.channel_id]
    span = ((change.after, None),)
    # The entry that is being folded is the next one.
    began = state.seq + 1
    for user_id, color in change.colors.items():
        past = ever.get(user_id)
        if past is None:
            fresh = Subscription(
                channel_id=change.channel_id,
                user_id=user_id,
                color=color,
                spans=span,
                began=began,
            )
        else:
            spans = (*past.spans, *span)
            fresh = msgspec.structs.replace(past, color=color, spans=spans, began=began)
        state.subscriptions.put(fresh)


@FOLDS.of(changes.Unsubscribed)
def _(state: State, change: changes.Unsubscribed) -> None:
    for user_id in change.user_ids:
        present = state.subscriptions[(change.channel_id, user_id)]
        *before, (after, _until) = present.spans
        span = [(after, change.until)] if change.until > after else []
        state.subscriptions.put(msgspec.structs.replace(present, spans=(*before, *span)))


@FOLDS.of(changes.SubscriptionChanged)
def _(state: State, change: changes.SubscriptionChanged) -> None:
    present = state.subscriptions[(change.channel_id, change.user_id)]
    state.subscriptions.put(revised(present, {change.property: change.value}))
