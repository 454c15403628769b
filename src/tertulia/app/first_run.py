"""The first run, which serves the page for creating an organization until one exists."""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tertulia.app import founding
from tertulia.app.founding import Founder
from tertulia.domain import names
from tertulia.domain.accounts import sessions
from tertulia.domain.accounts.sessions import NewSession
from tertulia.domain.organization import lifecycle
from tertulia.log.log import Log
from tertulia.model.errors import Refused, Unavailable
from tertulia.service.accounts import password_rules
from tertulia.service.audit_log import AuditRecorder
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, key_digest, load_secret
from tertulia.store import installation
from tertulia.wire.http import cookies
from tertulia.wire.http.audit import RequestOrigin
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.errors import error_response
from tertulia.wire.http.forms import received
from tertulia.wire.http.limiters import Limiters
from tertulia.wire.http.node import RequestLog
from tertulia.wire.http.rate_limits import SignInLimits
from tertulia.wire.http.request_head import client_address, client_network
from tertulia.wire.http.responses import failure
from tertulia.wire.http.sign_in import log_failed_sign_in, log_sign_in
from tertulia.wire.pages.form_flow import LOGIN, MAX_BODY, Field, new_password_field
from tertulia.wire.pages.html import MARK, STYLES, Speech, from_template, speech_for
from tertulia.wire.pages.public import packaged, static
from tertulia.wire.pages.web_client import client_files

logger = logging.getLogger("tertulia.http")

SETUP: Final = "/setup"
CODE: Final = "setup_code"
"""The key that the code is stored under in the database, so that all nodes share it."""
_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
"""The characters of setup codes: none that look alike."""
_NOTHING_YET: Final = (
    f"This server has no organization yet. Open {SETUP} in a browser to create one."
)


async def setup_code(log: Log) -> str:
    """Return the setup code, which creating an organization requires. The server prints it when it
    starts."""
    made = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(3))
    return await log.store.write(lambda c: installation.put_once(c, CODE, made))


async def forget_code(log: Log) -> None:
    """Delete the code after the organization was created."""
    await log.store.write(lambda c: installation.forget(c, CODE))


def setup_address(site: str, code: str) -> str:
    """Return the URL of the setup page with the code filled in."""
    return f"{site.rstrip('/')}{SETUP}?code={code}"


async def _health(_: Request) -> Response:
    """Respond that the process is running."""
    return JSONResponse({"status": "alive"})


async def _not_ready(_: Request) -> Response:
    """Respond that the server has no organization yet."""
    return JSONResponse({"status": "there is no organization yet"}, status_code=503)


async def _elsewhere(request: Request, _: Exception) -> Response:
    """Return an error to programs, and redirect browsers to the setup page."""
    if request.url.path.startswith("/api/"):
        return failure(Unavailable(_NOTHING_YET))
    return RedirectResponse(SETUP, status_code=302, headers={"Cache-Control": "no-store"})


class FirstRun:
    """The HTTP application until an organization exists."""

    def __init__(
        self, config: Config, log: Log, code: str, moved: Callable[[], Awaitable[object]]
    ) -> None:
        """Create the application. `moved` returns when the organization was created and the node
        serves requests."""
        self._config = config
        self._log = log
        self._code = code
        self._moved = moved
        self._sign_in_limits = SignInLimits(Limiters(log.elapsed))
        self.busy = asyncio.Lock()
        """Held while an organization is created, because the log must stay open."""

    def answers(self) -> ASGIApp:
        """Return the ASGI application."""
        routes = [
            Route(SETUP, self._set_up, methods=["GET", "POST"]),
            Route("/health", _health),
            Route("/ready", _not_ready),
            static(STYLES, packaged("fonts.css", "page.css"), "text/css"),
            *client_files(),
            static(MARK, packaged("icon.svg"), "image/svg+xml"),
            static("/static/icon-192.png", packaged("icon-192.png"), "image/png"),
        ]
        inside = Starlette(routes=routes, exception_handlers={404: _elsewhere})
        return RequestLog(inside, self._config)

    async def _set_up(self, request: Request) -> Response:
        """Show the form, or create the organization from it."""
        say = speech_for(request, "en")
        try:
            if request.method == "POST":
                require_own_page(self._config, request)
            sent, _ = await received(request, MAX_BODY)
            if request.method != "POST":
                return _form(self._config, say, sent)
            return await self._made(request, say, sent)
        except (Refused, Unavailable) as error:
            status = error_response(error)[0]
            return _form(self._config, say, {}, error=say.refusal(error), status=status)

    async def _made(self, request: Request, say: Speech, sent: Mapping[str, str]) -> Response:
        if not self._log.state.is_empty:
            return await self._there_already()
        try:
            self._require_code(request, sent.get("code", ""))
            founder = Founder(
                organization=names.realm_name(sent.get("organization", "")),
                address=names.address(sent.get("email", "")),
                full_name=lifecycle.founder_name(sent.get("full_name", "")),
                password=sent.get("password", ""),
            )
            await self._require_good(founder)
        except Refused as refusal:
            status = error_response(refusal)[0]
            return _form(self._config, say, sent, error=say.refusal(refusal), status=status)
        try:
            secret = load_secret(self._config.data_path, self._config.secret or None, create=True)
        except OSError as error:
            logger.error("the secret can't be written: %s", error)
            message = "The server can't write to its data directory."
            return _form(self._config, say, sent, error=message, status=500)
        vault = Vault(secret)
        try:
            origin = RequestOrigin(request.scope, AuditRecorder(self._log))
            async with self.busy:
                with origin:
                    cookies = await self._found(request, vault, founder)
        except Refused:
            # Someone else was faster, perhaps on another node.
            return await self._there_already()
        finally:
            vault.close()
        await self._moved()
        response = _to("/")
        for cookie in cookies:
            response.headers.append("Set-Cookie", cookie)
        return response

    async def _found(self, request: Request, vault: Vault, founder: Founder) -> list[str]:
        """Create the organization, and return the cookies of the owner's session."""
        log, token = self._log, secrets.token_urlsafe(32)
        owner = await founding.found(log, vault, founder)
        agent = request.headers.get("user-agent", "")
        address = client_address(request)
        new = NewSession(digest=key_digest(token), agent=agent, method="code", address=address)
        session = await log.submit(owner.id, sessions.begin, new)
        credential = log.state.credentials[owner.id]
        now = log.clock()
        log_sign_in(request, "code", owner.id, session)
        return cookies.session_cookies(
            self._config, vault, request, session, token, credential, now
        )

    async def _there_already(self) -> Response:
        await self._moved()
        return _to(LOGIN)

    async def _require_good(self, founder: Founder) -> None:
        known = (founder.address, founder.full_name, founder.organization)
        rules = password_rules(self._config)
        await asyncio.to_thread(rules.require, founder.password, known)

    def _require_code(self, request: Request, sent: str) -> None:
        who = client_network(request)
        self._sign_in_limits.require_code(who)
        if not hmac.compare_digest(_plain(sent).encode(), _plain(self._code).encode()):
            log_failed_sign_in(request, "code")
            raise Refused("This isn't the setup code that the server printed when it started.")
        self._sign_in_limits.code_was_right(who)


def _plain(code: str) -> str:
    """Return the code without separators and spaces."""
    return "".join(filter(str.isalnum, code.casefold()))


def _to(path: str) -> Response:
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


def _form(
    config: Config, say: Speech, sent: Mapping[str, str], *, error: str = "", status: int = 200
) -> Response:
    code = sent.get("code", "")
    return from_template(
        "form.html",
        status=status,
        speech=say,
        organization="Tertulia",
        icon=MARK,
        title=say("set_up"),
        paragraphs=(say("set_up_text"),),
        fields=[
            Field(
                name="code",
                label=say("code"),
                value=code,
                is_code=True,
                focused=not code,
                max=40,
                hint=say("code_hint"),
            ),
            Field(
                name="organization",
                label=say("organization_name"),
                value=sent.get("organization", ""),
                autocomplete="organization",
                focused=bool(code),
                max=names.MAX_REALM_NAME,
            ),
            Field(
                name="full_name",
                label=say("your_name"),
                value=sent.get("full_name", ""),
                autocomplete="name",
                min=names.MIN_FULL_NAME,
                max=names.MAX_FULL_NAME,
            ),
            Field(
                name="email",
                label=say("your_address"),
                type="email",
                value=sent.get("email", ""),
                autocomplete="username",
                max=254,
            ),
            new_password_field(config, say),
        ],
        button=say("begin"),
        error=error,
        hidden={},
        back=None,
    )
