"""What administrators set up for everybody: domains, linkifiers, playgrounds."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain.organization import domains, linkifiers, playgrounds
from tertulia.domain.organization.linkifiers import LinkifierValues
from tertulia.service.caller import Caller
from tertulia.wire.api.objects.administration import (
    DomainObject,
    LinkifierObject,
    domain_objects,
    linkifier_objects,
)
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path, Reads
from tertulia.wire.http.routing import Answer

# Domains


class Domains(Answer, kw_only=True):
    """The domains, in the order in which they were added."""

    domains: list[DomainObject]


async def get_domains(call: Call, params: NoParams) -> Domains:
    """The domains of which the addresses of new accounts may be, where they are restricted."""
    return Domains(domains=domain_objects(call.state))


class AddDomain(Params, kw_only=True, frozen=True):
    """A domain."""

    domain: str
    allow_subdomains: bool


class NewDomain(Answer, kw_only=True):
    """The domain's ID and name."""

    new_domain: tuple[int, str]


async def add_domain(call: Caller, params: AddDomain) -> NewDomain:
    """Add a domain, for owners."""
    domain = await call.submit(domains.add, params.domain, params.allow_subdomains)
    return NewDomain(new_domain=(domain.id, domain.name))


class OneDomain(Params, kw_only=True, frozen=True):
    """A domain that is there."""

    domain: Annotated[str, Path()]


class ChangeDomain(OneDomain, kw_only=True, frozen=True):
    """Whether its subdomains count."""

    allow_subdomains: bool


async def change_domain(call: Caller, params: ChangeDomain) -> Answer:
    """Say whether a domain's subdomains count, for owners."""
    await call.submit(domains.change, params.domain, params.allow_subdomains)
    return Answer()


async def remove_domain(call: Caller, params: OneDomain) -> Answer:
    """Remove a domain, for owners. With the last one, addresses are not restricted any more."""
    await call.submit(domains.remove, params.domain)
    return Answer()


# Linkifiers


class Linkifiers(Answer, kw_only=True):
    """The linkifiers, the one that wins over the others first."""

    linkifiers: list[LinkifierObject]


async def get_linkifiers(call: Call, params: NoParams) -> Linkifiers:
    """What is made a link of, and how."""
    return Linkifiers(linkifiers=linkifier_objects(call.state))


class OrderLinkifiers(Params, kw_only=True, frozen=True):
    """The IDs of all linkifiers."""

    ordered_linkifier_ids: list[Int]


async def order_linkifiers(call: Caller, params: OrderLinkifiers) -> Answer:
    """Give the linkifiers another order, for administrators."""
    await call.submit(linkifiers.order, params.ordered_linkifier_ids)
    return Answer()


TEXT_OR_NULL = Reads(str, {"type": "string"})
"""A string, where the text `null` says that there is none."""


class _LinkifierOptions(Params, kw_only=True, frozen=True):
    """How a link is made into text again."""

    example_input: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Meta(description="Something that the pattern matches. A reverse template needs it."),
    ] = UNSET
    reverse_template: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Meta(description="What is written: `{name}` is a variable, `{{` and `}}` are braces."),
    ] = UNSET
    alternative_url_templates: Annotated[
        list[str] | UnsetType, Meta(description="Other links that mean the same.")
    ] = UNSET


class AddLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    """A linkifier."""

    pattern: Annotated[
        str, Meta(description="A regular expression (RE2), whose groups are the variables.")
    ]
    url_template: Annotated[str, Meta(description="RFC 6570.")]


class NewId(Answer, kw_only=True):
    """The ID of what is new."""

    id: int


async def add_linkifier(call: Caller, params: AddLinkifier) -> NewId:
    """Add a linkifier after all others, for administrators."""
    return NewId(id=await call.submit(linkifiers.add, _given(params)))


class OneLinkifier(Params, kw_only=True, frozen=True):
    """A linkifier that is there."""

    filter_id: Annotated[Int, Path()]


class ChangeLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    """What is to be new of a linkifier; an empty text takes it away where it can be missing."""

    filter_id: Annotated[Int, Path()]
    pattern: str | UnsetType = UNSET
    url_template: str | UnsetType = UNSET


async def change_linkifier(call: Caller, params: ChangeLinkifier) -> Answer:
    """Change a linkifier, for administrators."""
    await call.submit(linkifiers.change, params.filter_id, _given(params))
    return Answer()


def _given(params: AddLinkifier | ChangeLinkifier) -> LinkifierValues:
    return LinkifierValues(
        pattern=params.pattern,
        url_template=params.url_template,
        example_input=params.example_input,
        reverse_template=params.reverse_template,
        alternative_url_templates=params.alternative_url_templates,
    )


async def remove_linkifier(call: Caller, params: OneLinkifier) -> Answer:
    """Remove a linkifier, for administrators."""
    await call.submit(linkifiers.remove, params.filter_id)
    return Answer()


# Playgrounds


class AddPlayground(Params, kw_only=True, frozen=True):
    """A place on the web where code can be tried."""

    name: str
    pygments_language: str
    url_template: Annotated[
        str, Meta(description="RFC 6570, with the variable `code` and no other.")
    ]


async def add_playground(call: Caller, params: AddPlayground) -> NewId:
    """Add a code playground, for administrators."""
    playground_id = await call.submit(
        playgrounds.add, params.name, params.pygments_language, params.url_template
    )
    return NewId(id=playground_id)


class OnePlayground(Params, kw_only=True, frozen=True):
    """A playground that is there."""

    playground_id: Annotated[Int, Path()]


async def remove_playground(call: Caller, params: OnePlayground) -> Answer:
    """Remove a code playground, for administrators."""
    await call.submit(playgrounds.remove, params.playground_id)
    return Answer()
