"""Accepting passwords and API keys of the previous server (the setting `moving_from_url`), once for
each imported account."""

import asyncio
import logging
from typing import Final

from starlette.requests import Request

from tertulia.domain.accounts import adoption
from tertulia.model.errors import NotAuthenticated
from tertulia.model.users import Credential, NewApiKey, User
from tertulia.service.credentials import Vault, key_digest
from tertulia.service.previous_server import VERIFYING, PreviousServer, is_key
from tertulia.wire.http.authentication import basic_credentials
from tertulia.wire.http.errors import BadAuthorization, TooManyTries
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import client_address, client_network, header

logger = logging.getLogger("tertulia.sign_in")

LEAST_SECONDS: Final = 1.0
"""How long refusing a password takes at least, so that the time doesn't tell which addresses have
an imported account."""


async def adopted_password(
    node: HttpNode, request: Request, user: User | None, password: str
) -> Credential | None:
    """Return the account's credential if it has just adopted this password; None if it isn't its
    password on the previous server. The caller has counted the attempt.

    Raises Unavailable if the previous server doesn't respond.
    """
    server = _server(node, request)
    if server is None:
        return None
    loop = asyncio.get_running_loop()
    until = loop.time() + LEAST_SECONDS
    if user is not None and adoption.adopts_password(user, node.state.credentials[user.id]):
        api_key = await server.key_with_password(user.address, password)
        if api_key is not None:
            hashed = await node.vault.hash_password(password)
            await _adopt(node, request, user, api_key, hashed)
            return node.state.credentials[user.id]
    await asyncio.sleep(until - loop.time())
    return None


async def adopts_key_of(node: HttpNode, request: Request) -> bool:
    """Return whether the account that an unknown API key of the request belongs to has just adopted
    the key. Raises Unavailable if the previous server doesn't respond."""
    server = _server(node, request)
    authorization = header(request.scope["headers"], b"authorization")
    if server is None or authorization is None:
        return False
    try:
        named, api_key = basic_credentials(authorization)
    except (NotAuthenticated, BadAuthorization):
        return False
    user = _account(node, named)
    if user is None or not is_key(api_key):
        return False

    async def verify() -> None:
        try:
            node.limits.keys.require(client_network(request), user.id)
        except TooManyTries:
            return
        if await server.is_key_of(user.address, authorization):
            await _adopt(node, request, user, api_key, None)

    digest = key_digest(api_key)
    await node.adoptions.do((user.id, digest), verify, MAX_AT_ONCE)
    return node.state.credentials.by_key_digest.get(digest) == user.id


MAX_AT_ONCE: Final = 16
"""Keys that are verified at the same time."""


def _server(node: HttpNode, request: Request) -> PreviousServer | None:
    return None if VERIFYING in request.headers else node.previous_server


def _account(node: HttpNode, named: str) -> User | None:
    """Return the account with this address, or with this placeholder address, if it may adopt a
    key."""
    state = node.state
    user = state.user_with_address(named)
    number = named.partition("@")[0].removeprefix("user")
    if user is None and number.isdecimal() and len(number) < 16:
        user = state.users.get(int(number))
    credential = None if user is None else state.credentials.get(user.id)
    if user is None or credential is None or not adoption.adopts_key(user, credential):
        return None
    return user


async def _adopt(
    node: HttpNode, request: Request, user: User, api_key: str, password_hash: str | None
) -> None:
    key = _sealed(node.vault, api_key)
    await node.log.submit(user.id, adoption.adopt, key, password_hash)
    what = "an API key" if password_hash is None else "a password and an API key"
    fields = {"user": user.id, "from": client_address(request)}
    logger.info("adopted %s from the previous server", what, extra={"fields": fields})


def _sealed(vault: Vault, api_key: str) -> NewApiKey:
    return NewApiKey(digest=key_digest(api_key), sealed=vault.sealed(api_key))
