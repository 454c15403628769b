"""OpenID Connect: the authorization code flow with PKCE, by discovery."""

import asyncio
import hashlib
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from tertulia.identity.provider import (
    LOGOUT_TOKEN_SECONDS,
    AuthorizationRequest,
    Claims,
    NotProven,
    ProviderDown,
    ProviderLogout,
    ProviderSignIn,
    ProviderWeb,
)
from tertulia.model.identities import ProvenIdentity
from tertulia.service.provider_methods import AppleMethod, GitlabMethod, GoogleMethod, OidcMethod
from tertulia.service.sign_in_methods import SignInMethod, file_text

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

T = TypeVar("T")

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Accepted signature algorithms: only those with a public key, because several people may know the
client's secret."""
CLOCK_SKEW: Final = 60
"""Accepted difference between the provider's clock and this server's, in seconds."""
DISCOVERY_SECONDS: Final = 3600.0
"""How long the provider's metadata is cached."""
KEYS_SECONDS: Final = 3600.0
"""How long the provider's keys are cached."""
DOWN_SECONDS: Final = 5.0
"""How long a provider that didn't respond isn't queried again."""
REFETCH_SECONDS: Final = 10.0
"""How long unknown keys don't cause another request for the provider's keys."""
SECRET_SECONDS: Final = 300
"""Lifetime of a signed client secret."""
MAX_TOKEN: Final = 64 * 1024
MAX_VALUES: Final = 10_000
"""The most values of the groups claim that are used."""
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


class OpenidSettings(Struct, frozen=True, kw_only=True):
    """A client's registration at a provider."""

    method: SignInMethod
    issuer: str
    client_id: str
    secret: Callable[[float], str]
    """Returns the client's secret at this UNIX time; empty for a public client. Raises OSError,
    ValueError."""
    scopes: str = "openid email profile"
    groups_claim: str = ""
    trusts_addresses: bool = False
    domain: str = ""
    """The Google Workspace domain that people must belong to; empty for any."""
    parameters: Mapping[str, str] = {}
    """Additional parameters of the authorization request."""


def settings_of(method: SignInMethod) -> OpenidSettings:
    """Return the registration that a method configures."""
    match method:
        case OidcMethod():
            return OpenidSettings(
                method=method,
                issuer=method.provider,
                client_id=method.client_id,
                secret=lambda _: method.secret(),
                scopes=method.scopes,
                groups_claim=method.groups_claim,
                trusts_addresses=method.trust_addresses,
            )
        case GoogleMethod():
            return OpenidSettings(
                method=method,
                issuer=method.provider,
                client_id=method.client_id,
                secret=lambda _: method.secret(),
                domain=method.domain,
                parameters={"hd": method.domain} if method.domain else {},
            )
        case GitlabMethod():
            return OpenidSettings(
                method=method,
                issuer=method.provider,
                client_id=method.client_id,
                secret=lambda _: method.secret(),
                groups_claim="groups",
            )
        case AppleMethod():
            return OpenidSettings(
                method=method,
                issuer=method.provider,
                client_id=method.client_id,
                secret=lambda now: _apple_secret(method, now),
                scopes="openid email name",
                parameters={"response_mode": "form_post"},
            )
        case _:
            raise TypeError(f"{method.name} doesn't use OpenID Connect")


def _apple_secret(method: AppleMethod, now: float) -> str:
    from joserfc import jwt
    from joserfc.jwk import ECKey

    claims: dict[str, Any] = {
        "iss": method.team_id,
        "sub": method.client_id,
        "aud": method.provider,
        "iat": int(now),
        "exp": int(now) + SECRET_SECONDS,
    }
    key = ECKey.import_key(file_text(method.key_file))
    return jwt.encode({"alg": "ES256", "kid": method.key_id}, claims, key)


class _Metadata(Struct, frozen=True):
    """The provider's metadata, as discovery returns it."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    authorization_response_iss_parameter_supported: bool = False
    backchannel_logout_supported: bool = False


class OpenidProvider:
    """A provider that is discovered by its issuer's URL."""

    def __init__(
        self, settings: OpenidSettings, web: ProviderWeb, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._web = web
        self._clock = clock
        self._busy = asyncio.Lock()
        self._metadata: _Metadata | None = None
        self._metadata_until = 0.0
        self._down: ProviderDown | None = None
        self._down_until = 0.0
        self._keys: KeySet | None = None
        self._keys_at = 0.0

    async def url(self, request: AuthorizationRequest) -> str:
        challenge = hashlib.sha256(request.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": request.redirect_url,
            "scope": self._settings.scopes,
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **self._settings.parameters,
        }
        return _with_query((await self._described()).authorization_endpoint, parameters)

    async def signed_in(
        self, request: AuthorizationRequest, answer: Mapping[str, str]
    ) -> ProviderSignIn:
        metadata = await self._described()
        # A response of another provider must not be accepted as this one's (RFC 9207).
        named = answer.get("iss")
        if named is None and metadata.authorization_response_iss_parameter_supported:
            raise NotProven("the response doesn't name its issuer")
        if named is not None and named != metadata.issuer:
            raise NotProven(f"the response comes from the issuer {named[:200]}")
        tokens = await self._exchanged(metadata, request, answer.get("code", ""))
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise NotProven("the response has no ID token")
        claims = await self._claims(metadata, token, nonce=request.nonce)
        self._require_own(claims)
        claims = await self._with_userinfo(metadata, claims, tokens.get("access_token"))
        return ProviderSignIn(identity=self._identity(claims, answer), session=_text(claims, "sid"))

    async def logout_url(self, back: str) -> str:
        metadata = await self._described()
        if not metadata.end_session_endpoint:
            return ""
        parameters = {"client_id": self._settings.client_id, "post_logout_redirect_uri": back}
        return _with_query(metadata.end_session_endpoint, parameters)

    async def logged_out(self, token: str) -> ProviderLogout:
        metadata = await self._described()
        claims = await self._claims(metadata, token)
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
            raise NotProven("the token isn't a logout token")
        if self._clock() - claims["iat"] > LOGOUT_TOKEN_SECONDS - CLOCK_SKEW:
            raise NotProven("the logout token is too old")
        if "nonce" in claims:
            raise NotProven("a logout token has no nonce")
        subject, session, token_id = (_text(claims, name) for name in ("sub", "sid", "jti"))
        if not token_id or not (subject or session):
            raise NotProven("the logout token doesn't say who signed out")
        if subject:
            subject = self._settings.method.subject(subject)
        return ProviderLogout(token_id=token_id, subject=subject, session=session)

    async def check(self) -> str:
        self._metadata_until = self._down_until = 0.0
        metadata = await self._described()
        count = len((await self._fetched_keys(metadata)).keys)
        try:
            self._settings.secret(self._clock())
        except (OSError, ValueError) as error:
            raise self._web.down(f"the client's secret can't be used: {error}") from None
        return f"{metadata.issuer} responds, and has {count} {'key' if count == 1 else 'keys'}"

    # The provider's metadata

    async def _described(self) -> _Metadata:
        async with self._busy:
            if self._metadata is None or time.monotonic() >= self._metadata_until:
                self._metadata = await self._asked(self._discovered())
                self._metadata_until = time.monotonic() + DISCOVERY_SECONDS
            return self._metadata

    async def _asked(self, answer: Coroutine[Any, Any, T]) -> T:
        """Return the provider's response. Raises ProviderDown immediately for a while after the
        provider didn't respond, so that not every sign-in waits for the timeout."""
        if self._down is not None and time.monotonic() < self._down_until:
            answer.close()
            raise self._down
        try:
            return await answer
        except ProviderDown as error:
            self._down, self._down_until = error, time.monotonic() + DOWN_SECONDS
            raise

    async def _discovered(self) -> _Metadata:
        issuer = self._settings.issuer.rstrip("/")
        try:
            result = await self._web.get(f"{issuer}/.well-known/openid-configuration")
            metadata = msgspec.convert(result, _Metadata)
        except (msgspec.ValidationError, NotProven) as error:
            raise self._web.down(f"{issuer} isn't an OpenID provider: {error}") from None
        if metadata.issuer.rstrip("/") != issuer:
            raise self._web.down(f"{issuer} calls itself {metadata.issuer[:200]}")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            scheme = urlsplit(getattr(metadata, name)).scheme
            if scheme != "https" and (scheme != "http" or issuer.startswith("https:")):
                raise self._web.down(f"the {name} of {issuer} doesn't use https")
        return metadata

    async def _fetched_keys(self, metadata: _Metadata) -> "KeySet":
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            result = await self._web.get(metadata.jwks_uri)
            self._keys = KeySet.import_key_set(result)
        except (JoseError, NotProven, ValueError, KeyError, TypeError) as error:
            raise self._web.down(f"{metadata.jwks_uri} isn't a set of keys: {error}") from None
        self._keys_at = time.monotonic()
        return self._keys

    async def _keys_younger_than(self, metadata: _Metadata, seconds: float) -> "KeySet":
        async with self._busy:
            if self._keys is None or time.monotonic() - self._keys_at >= seconds:
                return await self._asked(self._fetched_keys(metadata))
            return self._keys

    # Tokens

    async def _exchanged(
        self, metadata: _Metadata, request: AuthorizationRequest, code: str
    ) -> Claims:
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_url,
            "code_verifier": request.verifier,
        }
        headers = {}
        try:
            secret = settings.secret(self._clock())
        except (OSError, ValueError) as error:
            raise self._web.down(f"the client's secret can't be used: {error}") from None
        if secret and "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote(settings.client_id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = settings.client_id
            if secret:
                form["client_secret"] = secret
        tokens = await self._web.post(metadata.token_endpoint, form, headers)
        if not isinstance(tokens, dict):
            raise NotProven("the token response isn't an object")
        return tokens

    async def _claims(self, metadata: _Metadata, token: str, nonce: str | None = None) -> Claims:
        """Return the claims of a token that the provider signed for this client and that is valid
        now."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        if len(token) > MAX_TOKEN:
            raise NotProven("the token is too long")
        algorithms = [
            text for text in metadata.id_token_signing_alg_values_supported if text in ALGORITHMS
        ]
        try:
            keys = await self._keys_younger_than(metadata, KEYS_SECONDS)
            try:
                decoded = jwt.decode(token, keys, algorithms=algorithms)
            except InvalidKeyIdError:
                # The provider may sign with a new key.
                keys = await self._keys_younger_than(metadata, REFETCH_SECONDS)
                decoded = jwt.decode(token, keys, algorithms=algorithms)
            expected: dict[str, Any] = {
                "iss": {"essential": True, "value": metadata.issuer},
                "aud": {"essential": True, "value": self._settings.client_id},
                "iat": {"essential": True},
            }
            if nonce is not None:
                expected |= {
                    "exp": {"essential": True},
                    "sub": {"essential": True},
                    "nonce": {"essential": True, "value": nonce},
                }
            now = int(self._clock())
            jwt.JWTClaimsRegistry(now=now, leeway=CLOCK_SKEW, **expected).validate(decoded.claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise NotProven(f"the token isn't valid: {error}") from None
        return decoded.claims

    def _require_own(self, claims: Claims) -> None:
        """Raise NotProven for a token that was issued to another client too, or to people of
        another domain."""
        party, audience = claims.get("azp"), claims["aud"]
        is_shared = isinstance(audience, list) and len(audience) > 1
        if (party is not None or is_shared) and party != self._settings.client_id:
            raise NotProven("the token was issued to another client")
        if self._settings.domain and claims.get("hd") != self._settings.domain:
            raise NotProven(f"the account isn't in the domain {self._settings.domain}")

    async def _with_userinfo(self, metadata: _Metadata, claims: Claims, token: Any) -> Claims:
        """Add the claims that the ID token lacks."""
        rules = self._settings.method
        lacks_groups = bool(rules.roles or rules.groups) and self._values(claims) is None
        needed = {"email", "name"}
        if not self._settings.trusts_addresses:
            needed.add("email_verified")
        is_whole = needed <= claims.keys() and not lacks_groups
        if is_whole or not metadata.userinfo_endpoint or not isinstance(token, str):
            return claims
        result = await self._web.get(
            metadata.userinfo_endpoint, {"Authorization": f"Bearer {token}"}
        )
        if not isinstance(result, dict) or result.get("sub") != claims["sub"]:
            raise NotProven("the user info is about someone else")
        if "email" in claims and result.get("email") != claims["email"]:
            result = {**result, "email_verified": False}  # The status belongs to another address.
        return {**result, **claims}

    # The person

    def _identity(self, claims: Claims, answer: Mapping[str, str]) -> ProvenIdentity:
        verified, method = claims.get("email_verified"), self._settings.method
        is_verified = verified in (True, "true") or self._settings.trusts_addresses
        return ProvenIdentity(
            method=method.name,
            subject=method.subject(claims["sub"]),
            address=_text(claims, "email"),
            is_address_verified=is_verified,
            full_name=_name(claims) or _apple_name(answer),
            groups=self._values(claims),
        )

    def _values(self, claims: Claims) -> frozenset[str] | None:
        """Return the values of the groups claim. If no claim has its name, a name such as
        `realm_access.roles` is a path into objects."""
        name = self._settings.groups_claim
        result: Any = claims.get(name) if name else None
        if result is None and "." in name:
            result = claims
            for part in name.split("."):
                result = result.get(part) if isinstance(result, dict) else None
        if isinstance(result, str):
            result = [result]
        if not isinstance(result, Sequence):
            return None
        return frozenset(value for value in result[:MAX_VALUES] if isinstance(value, str))


def _text(claims: Claims, name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _name(claims: Claims) -> str:
    parts = (_text(claims, "given_name"), _text(claims, "family_name"))
    return (
        _text(claims, "name")
        or " ".join(filter(None, parts))
        or _text(claims, "preferred_username")
    )


def _apple_name(answer: Mapping[str, str]) -> str:
    """Return the name that Apple sends with the first sign-in, outside the token. It isn't signed,
    but it's only a name."""
    try:
        decoded = msgspec.json.decode(answer.get("user", "{}"))
        name = decoded["name"]
        return f"{name.get('firstName', '')} {name.get('lastName', '')}".strip()
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return ""


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters)}"
