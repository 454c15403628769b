"""Folds of devices, push tokens and subscriptions to pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.DeviceAdded)
def _(state: State, change: changes.DeviceAdded) -> None:
    state.devices.put(change.device)


@FOLDS.of(changes.DeviceRemoved)
def _(state: State, change: changes.DeviceRemoved) -> None:
    state.devices.remove(change.device_id)


@FOLDS.of(changes.PushTokenAdded)
def _(state: State, change: changes.PushTokenAdded) -> None:
    state.push_tokens.put(change.token)


@FOLDS.of(changes.PushTokensRemoved)
def _(state: State, change: changes.PushTokensRemoved) -> None:
    for token_id in change.token_ids:
        state.push_tokens.remove(token_id)


@FOLDS.of(changes.PushSubscribed)
def _(state: State, change: changes.PushSubscribed) -> None:
    state.push_subscriptions.put(change.subscription)


@FOLDS.of(changes.PushUnsubscribed)
def _(state: State, change: changes.PushUnsubscribed) -> None:
    for subscription_id in change.subscription_ids:
        state.push_subscriptions.remove(subscription_id)
