"""Accepting passwords and API keys of the previous server (the setting `moving_from_url`), once for
each imported account.

For an account that can't adopt one, the previous server is asked about an account that can't exist
there. So neither timing nor a failing server reveals which addresses have an imported account.
"""

import asyncio
import base64
import logging
import secrets
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
"""Minimum time before a password is refused. Servers verify a password only if the account exists,
which takes time."""


async def adopted_password(
    node: HttpNode, request: Request, address: str, user: User | None, password: str
) -> Credential | None:
    """Return the account's credential if it has just adopted this password, or None if the previous
    server refuses it. `user` is the account with the address, if any. The caller has counted the
    attempt.

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
    else:
        await server.key_with_password(_nobody(_mark(node, address)), secrets.token_hex())
    await asyncio.sleep(until - loop.time())
    return None


async def adopts_key_of(node: HttpNode, request: Request) -> bool:
    """Whether the account that the request's unknown API key belongs to has just adopted the key.
    Raises Unavailable if the previous server doesn't respond."""
    server = _server(node, request)
    authorization = header(request.scope["headers"], b"authorization")
    if server is None or authorization is None:
        return False
    try:
        named, api_key = basic_credentials(authorization)
    except (NotAuthenticated, BadAuthorization):
        return False
    user = _account(node, named)
    if not is_key(api_key):
        return False
    mark = _mark(node, named)
    account = -int(mark, 16) if user is None else user.id

    async def verify() -> None:
        try:
            node.limits.keys.require(client_network(request), account)
        except TooManyTries:
            return
        if user is None:
            nobody = _nobody(mark)
            other = base64.b64encode(f"{nobody}:{secrets.token_hex(16)}".encode()).decode()
            await server.is_key_of(nobody, f"Basic {other}")
        elif await server.is_key_of(user.address, authorization):
            await _adopt(node, request, user, api_key, None)

    digest = key_digest(api_key)
    await node.adoptions.do((account, digest), verify, MAX_CONCURRENT)
    return user is not None and node.state.credentials.by_key_digest.get(digest) == user.id


MAX_CONCURRENT: Final = 16
"""Concurrent verifications of keys."""


def _server(node: HttpNode, request: Request) -> PreviousServer | None:
    return None if VERIFYING in request.headers else node.previous_server


def _nobody(mark: str) -> str:
    """Return an address that no account has."""
    return f"nobody-{mark}@nobody.invalid"


def _mark(node: HttpNode, named: str) -> str:
    """Return a text that stands for an account that can't adopt anything. The same name always
    gives the same text, because servers limit attempts by address."""
    return node.vault.mark(named.casefold())


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
