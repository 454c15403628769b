"""The types of an integration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tertulia.integrations.payloads import Part


class Unsupported(Exception):
    """An event without a message."""

    def __init__(self, event: str) -> None:
        self.event = event
        super().__init__(event)


@dataclass(frozen=True)
class WebhookRequest:
    """A request from a service."""

    payload: Part
    headers: Mapping[str, str] = field(default_factory=dict)
    """The request's headers, by lowercase name."""
    body: bytes = b""
    """The request's body, for checking signatures."""
    url: str = ""
    """The webhook's URL, for signatures that cover it."""

    def header(self, name: str) -> str:
        """Return a header, or an empty text if it's missing."""
        return self.headers.get(name, "")


@dataclass(frozen=True)
class Post:
    """A message to send."""

    topic: str
    """The topic, unless the URL sets one."""
    content: str
    """Markdown."""
    event: str = ""
    """The kind of event, one of the integration's; may be empty."""
    branch: str = ""
    """The branch of a push."""


@dataclass(frozen=True)
class HandshakeReply:
    """The response to a service that checks the webhook's URL."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields of the response."""
    headers: Mapping[str, str] = field(default_factory=dict)


Translated = Post | HandshakeReply | None
"""None for events without a message, such as a ping."""
SignatureCheck = Callable[[str, WebhookRequest, float], bool]
"""Checks a signature with the secret; the last argument is the UNIX time."""


@dataclass(frozen=True)
class Integration:
    """An integration of a service."""

    name: str
    """Name in URLs."""
    title: str
    """The service's name."""
    translate: Callable[[WebhookRequest], Translated]
    """Translates a request. Raises Unsupported, and Malformed for invalid payloads."""
    events: Sequence[str] = ()
    """Kinds of events; empty if the service doesn't have kinds."""
    signature: SignatureCheck | None = None
    """None if the service doesn't sign requests."""
    has_branches: bool = False
    """Whether the service sends pushes to branches."""
    takes_templates: bool = False
    """Whether bots' templates apply."""


@dataclass(frozen=True)
class EventFilter:
    """A filter of events by kind, with `*` as a wildcard."""

    only: Sequence[str] | None = None
    """The kinds of events that pass; None for all."""
    exclude: Sequence[str] = ()
    branches: Sequence[str] = ()
    """The branches whose pushes pass, with `*` as a wildcard; empty for all."""

    def wants(self, event: str, branch: str = "") -> bool:
        """Whether the event passes. Events without a kind always do."""
        if branch and self.branches and not _matches(branch, self.branches):
            return False
        if not event:
            return True
        if self.only is not None and not _matches(event, self.only):
            return False
        return not _matches(event, self.exclude)


def _matches(event: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(event, pattern) for pattern in patterns)
