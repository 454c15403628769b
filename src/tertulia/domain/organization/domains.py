"""Email domains that the organization restricts new accounts to. Only owners can change them."""

import re
from typing import Final

import msgspec

from tertulia.domain import permissions
from tertulia.domain.organization import settings
from tertulia.model.changes import AnyChange, DomainAdded, DomainChanged, DomainRemoved
from tertulia.model.errors import Refused
from tertulia.model.organization import Domain
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")
MAX_DOMAIN: Final = 253


def add(context: CommandContext, name: str, allow_subdomains: bool) -> Decision[Domain]:
    """Add a domain. Raise Refused if it's invalid or already on the list."""
    permissions.require_owner(context.state, context.actor)
    state = context.state
    final = name.strip().lower()
    if len(final) > MAX_DOMAIN or not _DOMAIN.fullmatch(final):
        raise Refused("This isn't a valid domain name.")
    if domain_named(state, final) is not None:
        raise Refused(f"The domain {final} is already on the list.")
    domain = Domain(id=state.domains.next_id(), name=final, allow_subdomains=allow_subdomains)
    return Decision(domain, (DomainAdded(domain=domain),))


def change(context: CommandContext, name: str, allow_subdomains: bool) -> Decision[None]:
    """Set whether a domain's subdomains are allowed. Raise Refused if it isn't on the list."""
    permissions.require_owner(context.state, context.actor)
    domain = _existing_domain(context.state, name)
    if domain.allow_subdomains == allow_subdomains:
        return Decision(None)
    after = msgspec.structs.replace(domain, allow_subdomains=allow_subdomains)
    return Decision(None, (DomainChanged(domain=after),))


def remove(context: CommandContext, name: str) -> Decision[None]:
    """Remove a domain. Raise Refused if it isn't on the list.

    Removing the last domain turns the restriction off: otherwise nobody could join.
    """
    permissions.require_owner(context.state, context.actor)
    state = context.state
    domain = _existing_domain(state, name)
    changes: list[AnyChange] = [DomainRemoved(domain_id=domain.id, name=domain.name)]
    if len(state.domains) == 1:
        changes += settings.setting_changes(context, {"emails_restricted_to_domains": False})
    return Decision(None, changes)


def domain_named(state: State, name: str) -> Domain | None:
    """Return the domain with that name, ignoring case."""
    final = name.strip().lower()
    return next((domain for domain in state.domains if domain.name == final), None)


def _existing_domain(state: State, name: str) -> Domain:
    domain = domain_named(state, name)
    if domain is None:
        raise Refused("This domain isn't on the list.")
    return domain
