"""Where the caller's browsers and other programs are pushed to (Web Push). Not of the reference's
interface: this server's."""

from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import pushes
from tertulia.domain.accounts.pushes import NewSubscription
from tertulia.model.devices import PushSubscription
from tertulia.model.errors import Refused
from tertulia.service.notices.push_services import may_be_plain
from tertulia.service.notices.pushing import push_test
from tertulia.store.pushes import how_they_do
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class PushSubscriptionObject(Struct, kw_only=True):
    """A program that is pushed to."""

    id: int
    name: str
    service: Annotated[str, Meta(description="The host of the push service.")]
    created_at: int
    last_pushed_at: Annotated[int | None, Meta(description="Null where it never was.")]
    paused_until: Annotated[int | None, Meta(description="Nothing is pushed before.")]
    trouble: Annotated[str, Meta(description="Why the last push failed; empty where it did not.")]
    current: Annotated[bool, Meta(description="Whether it is of the browser that asks.")]


class PushSubscriptions(Answer, kw_only=True):
    """The newest first."""

    enabled: Annotated[bool, Meta(description="Whether this server pushes at all.")]
    public_key: Annotated[
        str,
        Meta(description="What to subscribe with at the push service (VAPID), in base64url."),
    ]
    subscriptions: list[PushSubscriptionObject]


async def get_push_subscriptions(call: Call, params: NoParams) -> PushSubscriptions:
    """Where the caller is pushed to, and the key to subscribe with. Not of the reference's
    interface: this server's."""
    found = call.consider(pushes.listed)
    doing = await call.node.store.read(how_they_do, [one.id for one in found])
    return PushSubscriptions(
        enabled=call.node.config.web_push,
        public_key=call.node.push_key.public,
        subscriptions=[_shown(call, one, *doing.get(one.id, (0.0, ""))) for one in found],
    )


def _shown(
    call: Call, one: PushSubscription, pushed_at: float = 0.0, trouble: str = ""
) -> PushSubscriptionObject:
    return PushSubscriptionObject(
        id=one.id,
        name=one.name,
        service=one.service,
        created_at=one.made_at,
        last_pushed_at=int(pushed_at) or None,
        paused_until=one.paused_until if one.paused_until > call.now else None,
        trouble=trouble,
        current=one.session_id is not None and one.session_id == call.session_id,
    )


class AddPushSubscription(Params, kw_only=True, frozen=True):
    """A program to push to, as the browser's `PushSubscription` has it."""

    endpoint: Annotated[str, Meta(description="The https address at the push service.")]
    p256dh: Annotated[str, Meta(description="The program's public key, in base64url.")]
    auth: Annotated[str, Meta(description="The secret for the encryption, in base64url.")]
    name: Annotated[
        str, Meta(description="What the person calls it. At most 60 characters are kept.")
    ] = ""


class AddedPushSubscription(Answer, kw_only=True):
    """What was added, or was there."""

    subscription: PushSubscriptionObject


async def add_push_subscription(call: Call, params: AddPushSubscription) -> AddedPushSubscription:
    """Push to a program of the caller's. Where it was added with a browser's session, it ends with
    that. Not of the reference's interface: this server's."""
    config = call.node.config
    if not config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    new = NewSubscription(
        endpoint=params.endpoint,
        p256dh=params.p256dh,
        auth=params.auth,
        name=params.name,
        session_id=call.session_id,
    )
    one = await call.submit(pushes.subscribe, new, partial(may_be_plain, config))
    return AddedPushSubscription(subscription=_shown(call, one))


class RevisePushSubscription(Params, kw_only=True, frozen=True):
    """What is to be different."""

    subscription_id: Annotated[Int, Path()]
    name: str | UnsetType = UNSET
    paused_until: Annotated[
        Int | UnsetType,
        Meta(description="Push nothing before that UNIX time, of the next year; 0 to go on."),
    ] = UNSET


async def revise_push_subscription(
    call: Call, params: RevisePushSubscription
) -> AddedPushSubscription:
    """Give a program another name, or leave it in peace for a while. Not of the reference's
    interface: this server's."""
    one = await call.submit(pushes.revise, params.subscription_id, params.name, params.paused_until)
    return AddedPushSubscription(subscription=_shown(call, one))


class OnePushSubscription(Params, kw_only=True, frozen=True):
    """Which one."""

    subscription_id: Annotated[Int, Path()]


async def remove_push_subscription(call: Call, params: OnePushSubscription) -> Answer:
    """Push to a program no more. Not of the reference's interface: this server's."""
    await call.submit(pushes.unsubscribe, params.subscription_id)
    return Answer()


async def test_push_subscription(call: Call, params: OnePushSubscription) -> Answer:
    """Push something to a program, to see whether it works: refused with what the push service
    says. Not of the reference's interface: this server's."""
    if not call.node.config.web_push:
        raise Refused("Push notifications aren't set up on this server.")
    one = call.consider(pushes.found, params.subscription_id)
    await push_test(call.node, call.user, one)
    return Answer()
