"""Writes `src/settings/declared.json`: the settings declared in `tertulia.model`, as fields of the
client's forms.

Run `python web/declared.py`, or `make client`, after a change. The file is committed because
packages are built without Tertulia's dependencies, and a test checks that it's up to date.
"""

import json
from collections.abc import Callable, Mapping
from enum import EnumMeta
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from tertulia.model.organization import Realm
from tertulia.model.settings import DeclaredSetting, Permission, declared_settings
from tertulia.model.users import PersonalSettings
from tertulia.wire.api import settings
from tertulia.wire.api.organization import objects as realm

FILE: Final = Path(__file__).parent / "src" / "settings" / "declared.json"
_KINDS: Final = {"boolean": "switch", "string": "text", "integer": "number"}


def fields(
    declared: Mapping[str, DeclaredSetting], wire_name: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Return the settings that have a section as form fields (`form/fields.ts`)."""
    return [
        {"name": wire_name(name), "section": one.setting.section}
        | _kind(name, one)
        | ({"forOwners": True} if one.setting.owners_only else {})
        for name, one in declared.items()
        if one.setting.section
    ]


def _kind(name: str, one: DeclaredSetting) -> dict[str, Any]:
    if isinstance(one.setting, Permission):
        return {"kind": "holders"}
    if name.endswith("_channel_id"):
        return {"kind": "channel"}
    if get_origin(one.type) is Literal:
        return {"kind": "choice", "values": list(get_args(one.type))}
    if isinstance(one.type, EnumMeta):
        return {"kind": "choice", "values": [value.value for value in one.type]}
    schema = msgspec.json.schema(one.options[0])
    if not one.is_nullable or schema["type"] != "integer":
        limits = {"minimum": "min", "maximum": "max"}
        bounds = {short: schema[long] for long, short in limits.items() if long in schema}
        return {"kind": _KINDS[schema["type"]], **bounds}
    if name.endswith("_seconds"):
        return {"kind": "limit"}
    return {"kind": "size", "min": schema["minimum"], "max": schema["maximum"]}


def written() -> str:
    """Return the file's content."""
    forms = {
        "organization": fields(declared_settings(Realm), realm.wire_name),
        "personal": fields(declared_settings(PersonalSettings), settings.wire_name),
    }
    lists = (
        f'"{of}": [\n' + ",\n".join(f"  {json.dumps(one)}" for one in found) + "\n]"
        for of, found in forms.items()
    )
    return "{\n" + ",\n".join(lists) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
