"""Changing the organization's settings, and deactivating it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import UNSET, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import signup
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization import lifecycle, settings
from tertulia.domain.organization.settings import FOR_EVER, OrganizationUpdate
from tertulia.model.errors import Refused
from tertulia.model.settings import DeclaredSetting, Permission
from tertulia.service import calls
from tertulia.service.node import Caller
from tertulia.wire.api.groups.objects import GivenChange, given_change
from tertulia.wire.api.organization.objects import (
    SIGN_IN_SETTING,
    api_settings,
    authentication_methods,
    server_methods,
    wire_name,
)
from tertulia.wire.api.settings import SettingParams, settings_sent
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import SAFE_INTEGER, Doc, Int, Params, Reads, with_optional
from tertulia.wire.http.routing import ApiResponse, Call


def _read_limit(text: str) -> int | None:
    if text.strip('"') == "unlimited":
        return None
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise ValueError("it must be a number or unlimited")
    limit = int(text)
    if not 0 < limit < SAFE_INTEGER:
        raise ValueError("it must be positive")
    return limit


LIMIT = Reads(_read_limit, {"oneOf": [{"type": "integer"}, {"const": "unlimited"}]})


def _read_call_server(text: str) -> str | None:
    url = text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text
    return None if url == "default" else url


CALL_SERVER = Reads(_read_call_server, {"type": "string"})
"""A string that some clients send as JSON, with quotes."""

_READ_AS: Final[Mapping[str, Any]] = {
    "jitsi_server_url": CALL_SERVER,
    "message_retention_days": LIMIT,
}
"""Readers of settings that are sent in another way than their type says."""


def _parameter(name: str, setting: DeclaredSetting) -> Any:
    """Return the type of the parameter for a setting."""
    about = Doc(setting.description or None)
    if isinstance(setting.setting, Permission):
        return Annotated[GivenChange, about]
    if reads := _READ_AS.get(name) or (LIMIT if setting.is_nullable else None):
        return Annotated[Any, reads, about]
    return Annotated[Int if setting.type is int else setting.type, about]


_CHANGEABLE: Final = {
    field: _parameter(field, setting)
    for field, setting in api_settings().items()
    if not setting.setting.read_only
}


@with_optional({wire_name(field): kind for field, kind in _CHANGEABLE.items()})
class UpdateRealm(Params, kw_only=True, frozen=True):
    string_id: Annotated[
        str | UnsetType, Doc("Not supported: the organization doesn't have a subdomain.")
    ] = UNSET
    authentication_methods: Annotated[
        dict[str, bool] | UnsetType,
        Doc(
            "Methods from realm_authentication_methods; at least one must stay enabled. Owners"
            " only."
        ),
    ] = UNSET


async def update_realm(call: Call, params: UpdateRealm) -> None:
    """Change the organization's settings. Requires an administrator. If one change isn't allowed,
    none are made."""
    guarded = ("authentication_methods", *map(wire_name, settings.FOR_OWNERS))
    if any(getattr(params, name, UNSET) is not UNSET for name in guarded):
        # These settings decide who can join, and how people sign in.
        sign_in.require_confirmed(call)
    await change_realm(call, params)


async def change_realm(call: Caller, params: UpdateRealm) -> None:
    """Change settings as the caller. Raises Refused."""
    permissions.require_administrator(call.state, call.user)
    if params.string_id is not UNSET:
        raise Refused("This server hosts a single organization, so its subdomain can't be changed.")
    values = {
        field: value
        for field in _CHANGEABLE
        if (value := getattr(params, wire_name(field))) is not UNSET
    }
    groups = {field: given_change(values.pop(field)) for field in REALM_SETTINGS if field in values}
    if values.get("message_retention_days", FOR_EVER) is None:
        values["message_retention_days"] = FOR_EVER
    if values.get("enable_spectator_access") and not call.node.config.web_public_streams_enabled:
        raise Refused("This server doesn't allow public access without an account.")
    if not calls.is_offered(call.node.config, values.get("video_chat_provider", 0)):
        raise Refused("This video call provider isn't set up on this server.")
    if params.authentication_methods is not UNSET:
        values[SIGN_IN_SETTING] = _password_sign_in(call, params.authentication_methods)
    edit = OrganizationUpdate(values=values, groups=groups)
    await call.prepare(values.get("description", UNSET))
    await call.submit(settings.change, edit, call.render)


def _password_sign_in(call: Caller, methods: dict[str, bool]) -> bool:
    """Return whether to allow password sign-in. Refuses unknown methods, turning off a method that
    the server's operator has enabled, and turning off the last method."""
    realm, by_server = call.state.realm, server_methods(call.node.config)
    known = authentication_methods(realm, by_server)
    for name, enabled in methods.items():
        if name not in known:
            raise Refused(f"The sign-in method '{name[:50]}' doesn't exist.")
        if name != "Email" and not enabled:
            raise Refused(
                f"'{name}' is enabled by the server, so the organization can't turn it off."
            )
    with_passwords = methods.get("Email", realm.password_sign_in)
    if not methods or not (with_passwords or by_server):
        raise Refused("At least one sign-in method must be enabled.")
    return with_passwords


async def update_default_settings(call: Call, params: SettingParams) -> None:
    """Change the default settings of new users. Requires an administrator. Their default language
    is a setting of the organization."""
    sent = settings_sent(params)
    if sent.pop("default_language", None) is not None:
        call.ignored.append("default_language")
    await call.submit(settings.change_defaults, sent)


class WelcomePreviewResponse(ApiResponse, kw_only=True):
    """The ID of the message."""

    message_id: int


async def preview_welcome(call: Call, welcome_message_custom_text: str) -> WelcomePreviewResponse:
    """Send yourself a preview of the Welcome Bot's message with this text. Requires an
    administrator."""
    text = welcome_message_custom_text
    await call.prepare(text)
    return WelcomePreviewResponse(
        message_id=await call.submit(signup.preview_welcome, call.render, text)
    )


async def deactivate_realm(
    call: Call,
    deletion_delay_days: Annotated[
        Int | None, Doc("Must be null: this server keeps the data.")
    ] = None,
) -> None:
    """Deactivate the organization. Requires an owner. Nobody can use it until the server's operator
    runs `tertulia reactivate`."""
    permissions.require_owner(call.state, call.user)
    sign_in.require_confirmed(call)
    if deletion_delay_days is not None:
        raise Refused(
            "Organizations can't be deleted here. Ask the server's operator, who can delete the"
            " database."
        )
    await call.submit(lifecycle.deactivate)
