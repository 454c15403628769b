"""`tertulia fields`: what people's profiles have beside their names."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

import msgspec

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import Noun, Verbs
from tertulia.domain.accounts import profile_fields
from tertulia.domain.accounts.profile_fields import CUSTOM, SERVICES
from tertulia.model.profiles import FieldKind, ProfileField
from tertulia.state.organization import State
from tertulia.wire.api.resources.profile_fields import (
    CreateProfileField,
    OneProfileField,
    OrderProfileFields,
    UpdateProfileField,
    create_profile_field,
    delete_profile_field,
    order_profile_fields,
    update_profile_field,
)

app = group(
    "fields", "Manage custom profile fields: list, create, change, reorder, and remove them."
)

KINDS: Final = {
    "text": FieldKind.SHORT_TEXT,
    "long-text": FieldKind.LONG_TEXT,
    "choice": FieldKind.CHOICE,
    "date": FieldKind.DATE,
    "link": FieldKind.LINK,
    "people": FieldKind.PEOPLE,
    "account": FieldKind.EXTERNAL_ACCOUNT,
    "pronouns": FieldKind.PRONOUNS,
}
"""What a field's values can be, by their names here."""
_DATA: Final = "field_data"
_PARTICULAR: Final = ("choices", "account", "url_pattern")
_NAMES: Final = {
    "name": "name",
    "type": "field_type",
    "hint": "hint",
    **dict.fromkeys(_PARTICULAR, _DATA),
    "required": "required",
    "editable_by_user": "editable_by_user",
    "in_summary": "display_in_profile_summary",
    "used_for_matching": "use_for_user_matching",
}


def _shown(_: State, one: ProfileField) -> dict[str, Shown]:
    kinds = {kind: name for name, kind in KINDS.items()}
    particular = {
        "choices": ",".join(choice.text for choice in one.choices),
        "account": one.account,
        "url_pattern": one.url_pattern,
    }
    return {
        "name": one.name,
        "type": kinds[one.kind],
        "hint": one.hint,
        **{name: value for name, value in particular.items() if value},
        "required": one.required,
        "editable_by_user": one.editable_by_user,
        "in_summary": one.in_summary,
        "used_for_matching": one.used_for_matching,
    }


def _sent(_: State, before: ProfileField | None, typed: Mapping[str, str]) -> dict[str, str]:
    sent = {name: text for name, text in typed.items() if name not in _PARTICULAR}
    if "type" in sent:
        if sent["type"] not in KINDS:
            raise UsageError(
                f"Invalid value '{sent['type'][:50]}' for type: expected {' or '.join(KINDS)}."
            )
        sent["type"] = str(KINDS[sent["type"]].value)
    if "choices" in typed:
        sent[_DATA] = _choices(before, typed["choices"])
    elif "account" in typed or "url_pattern" in typed:
        data = {"subtype": typed.get("account") or (before.account if before else CUSTOM)}
        pattern = typed.get("url_pattern", before.url_pattern if before else "")
        if pattern:
            data["url_pattern"] = pattern
        sent[_DATA] = msgspec.json.encode(data).decode()
    return sent


def _choices(before: ProfileField | None, text: str) -> str:
    """The options in JSON. One that there was keeps its key, for the profiles that have it."""
    keys = {choice.text: choice.key for choice in (before.choices if before else ())}
    last = max((int(key) for key in keys.values() if key.isdecimal()), default=-1)
    data: dict[str, dict[str, str]] = {}
    for order, name in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        if name not in keys:
            last += 1
            keys[name] = str(last)
        data[keys[name]] = {"text": name, "order": str(order)}
    return msgspec.json.encode(data).decode()


_verbs = Verbs(
    app,
    Noun(
        several="fields",
        one="field",
        records=profile_fields.in_order,
        shown=_shown,
        columns=("name", "type", "hint", "required"),
        names=_NAMES,
        sent=_sent,
        takes={
            "type": " or ".join(KINDS),
            "choices": "for type choice: the options, separated by commas",
            "account": f"for type account: {' or '.join(SERVICES)} or {CUSTOM}",
            "url_pattern": f"for account {CUSTOM}: a URL that contains %(username)s",
        },
    ),
)
_verbs.list()
_verbs.show("Pronouns")
_verbs.make(
    "create",
    CreateProfileField,
    create_profile_field,
    attrgetter("id"),
    "name=Team type=choice choices=Kitchen,Bar",
)
_verbs.change(UpdateProfileField, update_profile_field, "Team choices=Kitchen,Bar,Garden")
_verbs.order(OrderProfileFields, order_profile_fields, "Team Birthday")
_verbs.end(
    "remove",
    OneProfileField,
    delete_profile_field,
    "Remove a field and its values from all profiles.",
    "Team",
)
