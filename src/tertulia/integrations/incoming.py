"""What an integration is: how a service's requests become messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tertulia.integrations.payloads import Part


class Unsupported(Exception):
    """The service sends events of this kind, or says so, and there is no message for them."""

    def __init__(self, event: str) -> None:
        self.event = event
        super().__init__(event)


@dataclass(frozen=True)
class WebhookRequest:
    """What a service sent."""

    payload: Part
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in small letters."""
    body: bytes = b""
    """As it came, for signatures."""
    url: str = ""
    """The address that it was sent to, for the signatures that cover it."""

    def header(self, name: str) -> str:
        """That header; empty where it was not sent."""
        return self.headers.get(name, "")


@dataclass(frozen=True)
class Post:
    """A message to be."""

    topic: str
    """Where the address names none."""
    content: str
    """Markdown."""
    event: str = ""
    """What kind of event it is about, one of the integration's; empty where it has no kinds."""
    branch: str = ""
    """Of a push."""


@dataclass(frozen=True)
class HandshakeReply:
    """The service only asks whether somebody is there: what it wants to hear."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Of the answer."""
    headers: Mapping[str, str] = field(default_factory=dict)


Translated = Post | HandshakeReply | None
"""None for what says nothing to people: a ping, a change that nobody wants to hear of."""
SignatureCheck = Callable[[str, WebhookRequest, float], bool]
"""Whether a request is signed with the secret; the last argument is the time, in UNIX seconds."""


@dataclass(frozen=True)
class Integration:
    """One service."""

    name: str
    """In addresses."""
    title: str
    """Its own name for itself."""
    translate: Callable[[WebhookRequest], Translated]
    """Raises Unsupported, and Malformed for what cannot be the service's."""
    events: Sequence[str] = ()
    """The kinds of events that it makes messages of; none where there are no kinds."""
    signature: SignatureCheck | None = None
    """None for services that sign nothing."""
    has_branches: bool = False
    """Whether it tells of pushes to branches."""
    takes_templates: bool = False
    """Whether its messages are made by the templates of the bot's owner."""


@dataclass(frozen=True)
class EventFilter:
    """Which events an address wants: kinds of them, as patterns with `*`."""

    only: Sequence[str] | None = None
    """None for all."""
    exclude: Sequence[str] = ()
    branches: Sequence[str] = ()
    """Of which pushes are told; none for all. Patterns too."""

    def wants(self, event: str, branch: str = "") -> bool:
        """Whether messages about it are to be sent. Those without a kind always are."""
        if branch and self.branches and not _matches(branch, self.branches):
            return False
        if not event:
            return True
        if self.only is not None and not _matches(event, self.only):
            return False
        return not _matches(event, self.exclude)


def _matches(event: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(event, pattern) for pattern in patterns)
