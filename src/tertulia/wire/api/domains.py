"""Email domains that new users' addresses can have."""

from typing import Final

from msgspec import Struct, convert, field

from tertulia.domain.organization import domains
from tertulia.model import changes
from tertulia.model.organization import Domain
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_everybody
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import TextPath
from tertulia.wire.http.routing import ApiResponse, Call


class DomainObject(Struct, kw_only=True):
    """A domain that new users' email addresses can have."""

    name: str = field(name="domain")
    allow_subdomains: bool


def domain_objects(state: State) -> list[DomainObject]:
    """All domains, oldest first."""
    domains = sorted(state.domains, key=lambda domain: domain.id)
    return convert(domains, list[DomainObject], from_attributes=True)


def _object(domain: Domain) -> DomainObject:
    return convert(domain, DomainObject, from_attributes=True)


class DomainAddEvent(Event, kw_only=True, tag="realm_domains"):
    """A domain was added."""

    op: str = "add"
    realm_domain: DomainObject


class DomainChangeEvent(Event, kw_only=True, tag="realm_domains"):
    """A domain's `allow_subdomains` changed."""

    op: str = "change"
    realm_domain: DomainObject


class DomainRemoveEvent(Event, kw_only=True, tag="realm_domains"):
    """A domain was removed."""

    op: str = "remove"
    domain: str


class DomainsResponse(ApiResponse, kw_only=True):
    """The domains, oldest first."""

    domains: list[DomainObject]


async def get_domains(call: Call) -> DomainsResponse:
    """Get the domains that new users' email addresses can have.

    They apply only if `emails_restricted_to_domains` is true."""
    return DomainsResponse(domains=domain_objects(call.state))


class NewDomainResponse(ApiResponse, kw_only=True):
    """The new domain's ID and name."""

    new_domain: tuple[int, str]


async def add_domain(call: Caller, domain: str, allow_subdomains: bool) -> NewDomainResponse:
    """Add a domain. Requires an owner."""
    added = await call.submit(domains.add, domain, allow_subdomains)
    return NewDomainResponse(new_domain=(added.id, added.name))


async def change_domain(call: Caller, domain: TextPath, allow_subdomains: bool) -> None:
    """Change whether a domain includes its subdomains. Requires an owner."""
    await call.submit(domains.change, domain, allow_subdomains)


async def remove_domain(call: Caller, domain: TextPath) -> None:
    """Remove a domain. Requires an owner. Without any domains, all are allowed."""
    await call.submit(domains.remove, domain)


SECTIONS: Final[Sections] = {
    ("realm_domains",): lambda context: {"realm_domains": domain_objects(context.state)}
}


PROJECTIONS: Final[Projections] = (
    to_everybody(
        changes.DomainAdded, lambda _, change: DomainAddEvent(realm_domain=_object(change.domain))
    ),
    to_everybody(
        changes.DomainChanged,
        lambda _, change: DomainChangeEvent(realm_domain=_object(change.domain)),
    ),
    to_everybody(changes.DomainRemoved, lambda _, change: DomainRemoveEvent(domain=change.name)),
)
