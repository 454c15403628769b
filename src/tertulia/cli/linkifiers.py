"""`tertulia linkifiers`: what is written in a certain way becomes a link."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import msgspec

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.nouns import Noun, Verbs
from tertulia.model.organization import Linkifier
from tertulia.state.organization import State
from tertulia.wire.api.resources.administration import (
    AddLinkifier,
    ChangeLinkifier,
    OneLinkifier,
    OrderLinkifiers,
    add_linkifier,
    change_linkifier,
    order_linkifiers,
    remove_linkifier,
)

app = group(
    "linkifiers",
    "Manage linkifiers, which turn text such as #123 into links.",
)

_ALTERNATIVES = "alternative_url_templates"
_NAMES = {
    name: name
    for name in ("pattern", "url_template", "example_input", "reverse_template", _ALTERNATIVES)
}


def _shown(_: State, one: Linkifier) -> dict[str, Shown]:
    return {
        "pattern": one.pattern,
        "url_template": one.url_template,
        "example_input": one.example_input or "",
        "reverse_template": one.reverse_template or "",
        _ALTERNATIVES: " ".join(one.alternative_url_templates),
    }


def _sent(_: State, __: Any, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    if _ALTERNATIVES in sent:
        sent[_ALTERNATIVES] = msgspec.json.encode(sent[_ALTERNATIVES].split()).decode()
    return sent


_verbs = Verbs(
    app,
    Noun(
        several="linkifiers",
        one="linkifier",
        records=lambda state: state.linkifiers_in_order,
        called=attrgetter("pattern"),
        shown=_shown,
        columns=("pattern", "url_template"),
        names=_NAMES,
        sent=_sent,
        takes={_ALTERNATIVES: "alternative URL templates, separated by spaces"},
    ),
)
_verbs.list()
_verbs.show("3")
_verbs.make(
    "add",
    AddLinkifier,
    add_linkifier,
    attrgetter("id"),
    "'pattern=#(?P<id>[0-9]+)' 'url_template=https://git.example.com/issues/{id}'",
)
_verbs.change(
    ChangeLinkifier, change_linkifier, "3 'url_template=https://tickets.example.com/{id}'"
)
_verbs.order(OrderLinkifiers, order_linkifiers, "5 3")
_verbs.end(
    "remove",
    OneLinkifier,
    remove_linkifier,
    "Remove a linkifier. Existing messages don't change.",
    "3",
)
