"""Signing in by a token that another program has signed."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import names
from tertulia.model.errors import Refused, WrongPassword
from tertulia.service import json_web_tokens
from tertulia.service.json_web_tokens import BadToken
from tertulia.wire.api.objects.users import UserObject, user_shown
from tertulia.wire.api.resources.server import ApiKey, signed_in
from tertulia.wire.http import sign_in
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Alias, Params


class FetchApiKeyByToken(Params, kw_only=True, frozen=True):
    """A token."""

    token: Annotated[
        str,
        Alias("json_web_token"),
        Meta(description="A JSON web token whose claim `email` is the account's address."),
    ]
    include_profile: Annotated[bool, Meta(description="Whether to show the account.")] = False


class ApiKeyAndProfile(ApiKey, kw_only=True):
    """What a client authenticates with from then on."""

    user: UserObject | UnsetType = UNSET


async def fetch_api_key_by_token(call: Call, params: FetchApiKeyByToken) -> ApiKeyAndProfile:
    """The account's API key, for a token that a program has signed which shares a secret with this
    server (the setting `jwt_secret`)."""
    secret = call.node.config.jwt_secret
    if not secret:
        raise Refused("Signing in with JSON web tokens is turned off on this server.")
    try:
        claims = json_web_tokens.claims_of(params.token, secret, call.now)
    except BadToken as error:
        raise Refused(str(error)) from None
    address = claims.get("email")
    user = None
    if isinstance(address, str):
        user = call.state.user_with_address(names.address(address))
    if user is None or user.is_bot or user.id not in call.state.credentials:
        sign_in.note_failed(call.request, "token", None)
        raise WrongPassword("No account has the email address in the token.")
    known = await signed_in(call, sign_in.require_usable(call.node, user.id), "token")
    profile: UserObject | UnsetType = UNSET
    if params.include_profile:
        host = call.node.config.address_host
        profile = user_shown(
            call.state, call.state.users[user.id], host, sees_address=True, with_profile=True
        )
    return ApiKeyAndProfile(**msgspec.structs.asdict(known), user=profile)
