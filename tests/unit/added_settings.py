"""A program that declares one more boolean for organizations, people, and the server, and then uses
each like any other setting (`test_declared_settings.py`).

It's its own program because declarations are read when modules are imported.
"""

import asyncio
import os
import runpy
import sys
from pathlib import Path
from typing import Annotated, Any

from tertulia.model import organization as organization
from tertulia.model import users as users
from tertulia.model.settings import Setting

QUIET_HALLS = Setting("display", "No one shouts.", owners_only=True, since="0.9.0")


class Realm(organization.Realm, frozen=True, kw_only=True, omit_defaults=True):
    quiet_halls: Annotated[bool, QUIET_HALLS] = False


class PersonalSettings(users.PersonalSettings, frozen=True, kw_only=True, omit_defaults=True):
    whispers: Annotated[bool, Setting("writing")] = True


organization.Realm = Realm  # type: ignore[misc]
users.PersonalSettings = PersonalSettings  # type: ignore[misc]

from tertulia.service import config as config  # noqa: E402


class Config(config.Config, kw_only=True, frozen=True, forbid_unknown_fields=True):
    closing_bell: Annotated[bool, "Rings at midnight."] = False


config.Config = Config  # type: ignore[misc]

from tertulia.app.config import load  # noqa: E402
from tertulia.model.users import Role  # noqa: E402
from tertulia.wire.api.openapi import document  # noqa: E402
from tests.cli.support import Place, run  # noqa: E402
from tests.support import new_organization  # noqa: E402

ABOUT = "No one shouts. Owners only. New in version 0.9.0."


async def in_the_interface(data_dir: Path) -> None:
    async with new_organization(Config(data_dir=str(data_dir))) as org:
        ann = org["ann"]
        await org.add("ben", Role.ADMINISTRATOR)
        listener = await ann.register()
        assert listener.data["realm_quiet_halls"] is False
        assert listener.data["user_settings"]["whispers"] is True
        assert listener.data["realm_user_settings_defaults"]["whispers"] is True
        (await org["ben"].patch("/realm", quiet_halls=True)).refused("UNAUTHORIZED_PRINCIPAL")
        (await ann.patch("/realm", quiet_halls="perhaps")).refused("REQUEST_VARIABLE_INVALID")
        (await ann.patch("/realm", quiet_halls=True)).ok
        (await ann.patch("/realm/user_settings_defaults", whispers=False)).ok
        (await ann.patch("/settings", whispers=False)).ok
        events = [{**event, "id": 0} for event in await listener.events()]
        one = {"id": 0, "op": "update", "value": False, "property": "whispers"}
        assert events == [
            {**one, "type": "realm", "property": "quiet_halls", "value": True},
            {**one, "type": "realm_user_settings_defaults"},
            {**one, "type": "user_settings"},
        ]
        data = (await ann.register()).data
        assert data["realm_quiet_halls"] is True
        assert data["user_settings"]["whispers"] is False


def in_the_openapi_document() -> None:
    for path, name, about in (
        ("/realm", "quiet_halls", ABOUT),
        ("/settings", "whispers", ""),
        ("/realm/user_settings_defaults", "whispers", ""),
    ):
        body = document()["paths"][path]["patch"]["requestBody"]["content"]
        schema = body["application/x-www-form-urlencoded"]["schema"]["properties"][name]
        assert schema["type"] == "boolean"
        assert schema.get("description", "") == about


def on_the_command_line(data_dir: Path) -> None:
    place = Place(data_dir)
    place.create_organization()

    def printed(*arguments: str) -> Any:
        result = run(*arguments, *place.flags)
        assert result.exit_code == 0, result.output
        return " ".join(result.stdout.split())

    assert printed("settings", "set", "quiet_halls=true") == "quiet_halls true"
    shown = printed("settings", "show", "quiet_halls")
    assert shown == f"value true takes true or false about {ABOUT}"
    assert printed("defaults", "set", "whispers=false") == "whispers false"
    assert "whispers false" in printed("defaults", "list")
    assert "closing_bell = false" in run("config", "--show", *place.flags).stdout


def in_the_configuration() -> None:
    assert load({}).closing_bell is False  # type: ignore[attr-defined]
    os.environ["TERTULIA_CLOSING_BELL"] = "true"
    assert load({}).closing_bell is True  # type: ignore[attr-defined]
    assert "TERTULIA_CLOSING_BELL Rings at midnight." in " ".join(run("config").stdout.split())


def in_the_form(script: Path) -> None:
    text = runpy.run_path(str(script))["written"]()
    for line in (
        '{"name": "quiet_halls", "section": "display", "kind": "switch", "forOwners": true}',
        '{"name": "whispers", "section": "writing", "kind": "switch"}',
    ):
        assert line in text


if __name__ == "__main__":
    place, script = map(Path, sys.argv[1:])
    asyncio.run(in_the_interface(place / "interface"))
    in_the_openapi_document()
    on_the_command_line(place / "command-line")
    in_the_configuration()
    in_the_form(script)
