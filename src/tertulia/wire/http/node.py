"""A node as its HTTP interface sees it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tertulia.log.measures import SECONDS, Histogram
from tertulia.service.node import Node
from tertulia.wire.http.attempt_limits import SignInLimits
from tertulia.wire.http.fragments import MESSAGE_BYTES, Fragments
from tertulia.wire.http.limits import Limits
from tertulia.wire.http.positions import Positions
from tertulia.wire.http.rate_limits import RequestLimits
from tertulia.wire.http.request_measures import RequestMeasures


class ServerGauges(Protocol):
    """What an HTTP server knows of itself."""

    @property
    def connections(self) -> int:
        """How many are open."""

    @property
    def in_progress(self) -> int:
        """Requests that are being answered, without polls."""

    @property
    def refused(self) -> int:
        """Requests that were refused because there was too much to do."""


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with what the interface keeps from one request to the next."""

    limits: Limits
    request_measures: RequestMeasures = field(default_factory=RequestMeasures)
    loop_lag: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    """How much later than wanted the event loop called something."""
    gauges: list[ServerGauges] = field(default_factory=list)
    """Of the HTTP server that answers for this node; none where there is none."""
    fragments: Fragments = field(default_factory=Fragments)
    """What answers are put together of."""
    encoded_messages: Fragments = field(default_factory=lambda: Fragments(MESSAGE_BYTES))
    """Messages as many viewers see them: apart from the others, for there are very many."""

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
