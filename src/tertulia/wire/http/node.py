"""A node as its HTTP interface sees it."""

from dataclasses import dataclass, field

from tertulia.service.node import Node
from tertulia.wire.http.attempt_limits import SignInLimits
from tertulia.wire.http.fragments import MESSAGE_BYTES, Fragments
from tertulia.wire.http.rate_limits import RequestLimits


@dataclass(frozen=True, kw_only=True)
class HttpNode(Node):
    """A node, with what the interface keeps from one request to the next."""

    sign_in_limits: SignInLimits
    request_limits: RequestLimits
    fragments: Fragments = field(default_factory=Fragments)
    """What answers are put together of."""
    encoded_messages: Fragments = field(default_factory=lambda: Fragments(MESSAGE_BYTES))
    """Messages as many viewers see them: apart from the others, for there are very many."""
