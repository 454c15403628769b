"""`tertulia domains`: of which domains the addresses of new accounts may be."""

from operator import attrgetter

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.nouns import Noun, Verbs
from tertulia.model.organization import Domain
from tertulia.state.organization import State
from tertulia.wire.api.resources.administration import (
    AddDomain,
    ChangeDomain,
    OneDomain,
    add_domain,
    change_domain,
    remove_domain,
)

app = group(
    "domains",
    "Manage the email domains that new users' addresses can have if"
    " emails_restricted_to_domains is true.",
)

_NAMES = {"domain": "domain", "allow_subdomains": "allow_subdomains"}


def _shown(_: State, one: Domain) -> dict[str, Shown]:
    return {"domain": one.name, "allow_subdomains": one.allow_subdomains}


_verbs = Verbs(
    app,
    Noun(
        several="domains",
        one="domain",
        records=lambda state: sorted(state.domains, key=attrgetter("id")),
        shown=_shown,
        columns=tuple(_NAMES),
        names=_NAMES,
    ),
)
_verbs.list()
_verbs.make(
    "add",
    AddDomain,
    add_domain,
    lambda answer: int(answer.new_domain[0]),
    "domain=example.com allow_subdomains=false",
)
_verbs.change(ChangeDomain, change_domain, "example.com allow_subdomains=true")
_verbs.end(
    "remove",
    OneDomain,
    remove_domain,
    "Remove a domain. Once none are left, all domains are allowed.",
    "example.com",
)
