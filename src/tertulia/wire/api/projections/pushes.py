"""Events of the programs that are pushed to, for the account whose they are. Where they are is
shown to nobody. (Clients of the reference do not know these events, and leave them out.)"""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner


class PushSubscriptionsEvent(Event, kw_only=True, tag="push_subscriptions"):
    """The list of the account's programs is another one: it is to be fetched again."""

    op: str = "change"


PROJECTIONS: Final[Projections] = (
    to_owner(changes.PushSubscribed, lambda _, __: PushSubscriptionsEvent()),
    to_owner(changes.PushUnsubscribed, lambda _, __: PushSubscriptionsEvent()),
)
