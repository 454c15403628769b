"""What administrators set up for everybody, beside the organization's settings."""

from msgspec import Struct


class Domain(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A domain that the e-mail addresses of new accounts may be of."""

    id: int
    name: str
    """In lower case."""
    allow_subdomains: bool = False


class Linkifier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Makes links of what is written in a certain way: `#123`, for example."""

    id: int
    order: int
    """Where several match, the one with the smallest number wins."""
    pattern: str
    """A regular expression in RE2's syntax, whose named groups are the templates' variables."""
    url_template: str
    """RFC 6570."""
    example_input: str | None = None
    reverse_template: str | None = None
    """What is written for a link: `{name}` is a variable, `{{` and `}}` are braces."""
    alternative_url_templates: tuple[str, ...] = ()
    """Other links that `reverse_template` can be made of."""


class Playground(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place on the web where code in one language can be tried."""

    id: int
    name: str
    language: str
    """As Pygments calls it."""
    url_template: str
    """RFC 6570, with the one variable `code`."""


class DefaultChannelGroup(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Channels that a new user can choose together."""

    id: int
    name: str
    description: str = ""
    channel_ids: tuple[int, ...] = ()
    """Ascending."""


class OnboardingStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A hint for beginners that a user has seen."""

    user_id: int
    name: str
