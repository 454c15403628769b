"""Commands for administrators: profile fields, email domains, linkifiers, playgrounds, and
announcements. `tertulia reactivate` opens a deactivated organization."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import typer

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Printed, command, configured, done, group, listing, opened
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import ManagedNoun, by_id
from tertulia.cli.nouns import fields as shown_fields
from tertulia.cli.tables import moment
from tertulia.domain.accounts import profiles
from tertulia.domain.accounts.profiles import CUSTOM, SERVICES
from tertulia.domain.organization import banners, lifecycle
from tertulia.model.banners import Banner
from tertulia.model.organization import Linkifier
from tertulia.model.profiles import FieldKind, ProfileField
from tertulia.service.config import Config
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api import domains as domains_api
from tertulia.wire.api import linkifiers as linkifiers_api
from tertulia.wire.api import playgrounds as playgrounds_api
from tertulia.wire.api import profiles as fields_api

EXAMPLES = {"reactivate": "Example: `tertulia reactivate --data-dir data`"}


@configured
async def reactivate(config: Config) -> Printed:
    """Reactivate the organization after an owner deactivated it.

    Everyone can use it as before. The server can keep running.
    """
    async with opened(config) as (log, _):
        await log.submit(None, lifecycle.reactivate)
        return done(f"Reactivated '{log.state.realm.name}'.")


# Profile fields

_KINDS: Final = {
    "text": FieldKind.SHORT_TEXT,
    "long-text": FieldKind.LONG_TEXT,
    "choice": FieldKind.CHOICE,
    "date": FieldKind.DATE,
    "link": FieldKind.LINK,
    "people": FieldKind.PEOPLE,
    "account": FieldKind.EXTERNAL_ACCOUNT,
    "pronouns": FieldKind.PRONOUNS,
}
_DATA: Final = "field_data"
_OF_A_KIND: Final = ("choices", "account", "url_pattern")
"""Settings that only one kind of field has. The API has them in `field_data`."""


def _field_shown(_: State, field: ProfileField) -> dict[str, Shown]:
    kinds = {kind: name for name, kind in _KINDS.items()}
    of_a_kind = {
        "choices": ",".join(choice.text for choice in field.choices),
        "account": field.account,
        "url_pattern": field.url_pattern,
    }
    return {
        "name": field.name,
        "type": kinds[field.kind],
        "hint": field.hint,
        **{name: value for name, value in of_a_kind.items() if value},
        "required": field.required,
        "editable_by_user": field.editable_by_user,
        "in_summary": field.in_summary,
        "used_for_matching": field.used_for_matching,
    }


def _field_sent(_: State, before: ProfileField | None, typed: Mapping[str, str]) -> dict[str, str]:
    sent = {name: text for name, text in typed.items() if name not in _OF_A_KIND}
    if kind := sent.get("type"):
        if kind not in _KINDS:
            raise UsageError(f"Invalid value '{kind[:50]}' for type: expected {_KIND_NAMES}.")
        sent["type"] = str(_KINDS[kind].value)
    if "choices" in typed:
        sent[_DATA] = _choices(before, typed["choices"])
    elif "account" in typed or "url_pattern" in typed:
        data = {"subtype": typed.get("account") or (before.account if before else CUSTOM)}
        if pattern := typed.get("url_pattern", before.url_pattern if before else ""):
            data["url_pattern"] = pattern
        sent[_DATA] = msgspec.json.encode(data).decode()
    return sent


_KIND_NAMES: Final = " or ".join(_KINDS)


def _choices(before: ProfileField | None, text: str) -> str:
    """Return options as JSON. Existing ones keep their keys, which profiles refer to."""
    keys = {choice.text: choice.key for choice in (before.choices if before else ())}
    last = max((int(key) for key in keys.values() if key.isdecimal()), default=-1)
    data: dict[str, dict[str, str]] = {}
    for order, name in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        if name not in keys:
            last += 1
            keys[name] = str(last)
        data[keys[name]] = {"text": name, "order": str(order)}
    return msgspec.json.encode(data).decode()


_fields = ManagedNoun(
    "fields",
    "Manage custom profile fields: list, create, change, reorder, and remove them.",
    singular="field",
    records=profiles.in_order,
    shown=_field_shown,
    columns=("name", "type", "hint", "required"),
    settings={
        "name": "name",
        "type": "field_type",
        "hint": "hint",
        **dict.fromkeys(_OF_A_KIND, _DATA),
        "required": "required",
        "editable_by_user": "editable_by_user",
        "in_summary": "display_in_profile_summary",
        "used_for_matching": "use_for_user_matching",
    },
    sent=_field_sent,
    takes={
        "type": _KIND_NAMES,
        "choices": "for type choice: the options, separated by commas",
        "account": f"for type account: {' or '.join(SERVICES)} or {CUSTOM}",
        "url_pattern": f"for account {CUSTOM}: a URL that contains %(username)s",
    },
)
fields = _fields.app
_fields.list()
_fields.show("Pronouns")
_fields.create(
    "create",
    fields_api.create_profile_field,
    "name=Team type=choice choices=Kitchen,Bar",
    attrgetter("id"),
)
_fields.change(fields_api.update_profile_field, "Team choices=Kitchen,Bar,Garden")
_fields.order(fields_api.order_profile_fields, "Team Birthday")
_fields.end(
    "remove",
    fields_api.delete_profile_field,
    "Remove a field and its values from all profiles.",
    "Team",
)


# Email domains

_domains = ManagedNoun(
    "domains",
    "Manage the email domains that new users' addresses can have if"
    " emails_restricted_to_domains is true.",
    singular="domain",
    records=by_id("domains"),
    shown=shown_fields(domain="name", allow_subdomains="allow_subdomains"),
    columns=("domain", "allow_subdomains"),
    settings=("domain", "allow_subdomains"),
)
domains = _domains.app
_domains.list()
_domains.create(
    "add",
    domains_api.add_domain,
    "domain=example.com allow_subdomains=false",
    lambda response: int(response.new_domain[0]),
)
_domains.change(domains_api.change_domain, "example.com allow_subdomains=true")
_domains.end(
    "remove",
    domains_api.remove_domain,
    "Remove a domain. Once none are left, all domains are allowed.",
    "example.com",
)


# Linkifiers and playgrounds

_ALTERNATIVES: Final = "alternative_url_templates"
_LINKIFIER: Final = ("pattern", "url_template", "example_input", "reverse_template", _ALTERNATIVES)


def _linkifier_shown(_: State, linkifier: Linkifier) -> dict[str, Shown]:
    texts: dict[str, Shown] = {name: getattr(linkifier, name) or "" for name in _LINKIFIER}
    return {**texts, _ALTERNATIVES: " ".join(linkifier.alternative_url_templates)}


def _linkifier_sent(_: State, __: Any, typed: Mapping[str, str]) -> dict[str, str]:
    sent = dict(typed)
    if _ALTERNATIVES in sent:
        sent[_ALTERNATIVES] = msgspec.json.encode(sent[_ALTERNATIVES].split()).decode()
    return sent


_linkifiers = ManagedNoun(
    "linkifiers",
    "Manage linkifiers, which turn text such as #123 into links.",
    singular="linkifier",
    records=lambda state: state.linkifiers_in_order,
    called=attrgetter("pattern"),
    shown=_linkifier_shown,
    columns=("pattern", "url_template"),
    settings=_LINKIFIER,
    sent=_linkifier_sent,
    takes={_ALTERNATIVES: "alternative URL templates, separated by spaces"},
)
linkifiers = _linkifiers.app
_linkifiers.list()
_linkifiers.show("3")
_linkifiers.create(
    "add",
    linkifiers_api.add_linkifier,
    "'pattern=#(?P<id>[0-9]+)' 'url_template=https://git.example.com/issues/{id}'",
    attrgetter("id"),
)
_linkifiers.change(
    linkifiers_api.change_linkifier, "3 'url_template=https://tickets.example.com/{id}'"
)
_linkifiers.order(linkifiers_api.order_linkifiers, "5 3")
_linkifiers.end(
    "remove",
    linkifiers_api.remove_linkifier,
    "Remove a linkifier. Existing messages don't change.",
    "3",
)

_playgrounds = ManagedNoun(
    "playgrounds",
    "Manage code playgrounds, where people can run code from messages.",
    singular="playground",
    records=by_id("playgrounds"),
    shown=shown_fields("name", "language", "url_template"),
    columns=("name", "language", "url_template"),
    settings={"name": "name", "language": "pygments_language", "url_template": "url_template"},
    takes={"language": "a language, as named by Pygments"},
)
playgrounds = _playgrounds.app
_playgrounds.list()
_playgrounds.create(
    "add",
    playgrounds_api.add_playground,
    "name=Rust language=Rust 'url_template=https://play.rust-lang.org/?code={code}'",
    attrgetter("id"),
)
_playgrounds.end("remove", playgrounds_api.remove_playground, "Remove a playground.", "Rust")


# Announcements

announce = group(
    "announce",
    "Announce something to everyone, such as planned maintenance, with a banner in their client.",
)
_HOUR: Final = 3600
_DAY: Final = 86400


def _banner_shown(banner: Banner) -> dict[str, Shown]:
    return {name: getattr(banner, name) for name in ("id", "content", "posted_at", "ends_at")}


@command(announce, "post", "announce post 'Down for an hour tonight at nine.' --hours 8")
async def post(
    caller: Caller,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain text, up to 500 characters.")],
    days: Annotated[int, typer.Option(min=0, max=366, help="Days to show the banner.")] = 0,
    hours: Annotated[
        int,
        typer.Option(
            min=0,
            max=366 * 24,
            help="Hours to show the banner, added to --days. Default: one week.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Show only the banner, and don't post in the announcements channel."
        ),
    ] = False,
) -> Printed:
    """Show everyone a banner until it expires or they dismiss it.

    The notification bot also posts the announcement in the channel set by
    updates_announcements_channel_id, if there is one, because not every client shows banners.
    """
    seconds = days * _DAY + hours * _HOUR or 7 * _DAY
    posted = await caller.submit(banners.post, text, seconds, not quiet, caller.render)
    sentence = f"The banner is shown until {moment(posted.ends_at)}. Its ID is {posted.id}."
    return Printed(_banner_shown(posted), [sentence])


@command(announce, "list", "announce list --data-dir data")
async def list_announcements(caller: Caller) -> Printed:
    """List current announcements."""
    rows = [_banner_shown(value) for value in by_id("banners")(caller.state)]
    return listing(
        "announcements", {"ID": "id", "ENDS": ("ends_at", moment), "TEXT": "content"}, rows
    )


@command(announce, "end", "announce end 3 --data-dir data")
async def end(
    caller: Caller,
    which: Annotated[int, typer.Argument(metavar="ID", help="ID, as shown by `announce list`.")],
) -> Printed:
    """End an announcement. The bot's message is kept."""
    await caller.submit(banners.end, which)
    return done("The announcement has ended.")
