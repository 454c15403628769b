"""Which e-mail addresses accounts may have, by the organization's rules."""

from tertulia.model.errors import Refused
from tertulia.state.organization import State


class NotAdmitted(Refused):
    """The organization takes no accounts with such an address."""


def require(state: State, address: str) -> None:
    """NotAdmitted for an address that the organization's rules leave out: where it restricts
    addresses to its domains, also one with a `+`, of which a mailbox has many."""
    local, _, host = address.casefold().rpartition("@")
    if not state.realm.emails_restricted_to_domains:
        if state.realm.disallow_disposable_email_addresses and is_disposable(host):
            raise NotAdmitted("This organization doesn't accept disposable email addresses.")
        return
    if "+" in local:
        raise NotAdmitted("This organization doesn't accept email addresses that contain '+'.")
    if not any(
        host == domain.name or (domain.allow_subdomains and host.endswith("." + domain.name))
        for domain in state.domains
    ):
        raise NotAdmitted("This organization doesn't accept email addresses in this domain.")


def is_disposable(host: str) -> bool:
    """Whether it, or a domain that it is below of, gives addresses to anybody for a moment."""
    from disposable_email_domains import blocklist  # Thousands, which few organizations ask for.

    labels = host.casefold().split(".")
    return any(".".join(labels[start:]) in blocklist for start in range(len(labels) - 1))
