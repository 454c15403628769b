"""A node as its HTTP interface sees it."""

from dataclasses import dataclass, field
from functools import cached_property

from tertulia.service.node import Node
from tertulia.wire.http.attempt_limits import SignInLimits
from tertulia.wire.http.fragments import Fragments
from tertulia.wire.http.limits import Limits
from tertulia.wire.http.positions import Positions
from tertulia.wire.http.rate_limits import RequestLimits


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with what the interface keeps from one request to the next."""

    limits: Limits
    fragments: Fragments = field(default_factory=Fragments)
    """What answers are put together of."""

    @property
    def sign_in_limits(self) -> SignInLimits:
        return self.limits.sign_in

    @property
    def request_limits(self) -> RequestLimits:
        return self.limits.requests

    @cached_property
    def positions(self) -> Positions:
        """What requests and answers say of the log's position."""
        return Positions(self.log, self.config)
