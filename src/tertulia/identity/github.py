"""GitHub's OAuth. It isn't OpenID Connect, so people are looked up with GitHub's API."""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from tertulia.identity.provider import (
    AuthorizationRequest,
    NotProven,
    ProviderLogout,
    ProviderSignIn,
    ProviderWeb,
)
from tertulia.model.identities import ProvenIdentity
from tertulia.service.provider_methods import GithubMethod


class Github:
    """GitHub, or GitHub Enterprise Server."""

    def __init__(self, method: GithubMethod, web: ProviderWeb) -> None:
        self._method = method
        self._web = web
        self._url = method.provider
        is_public = urlsplit(self._url).hostname == "github.com"
        self._api = "https://api.github.com" if is_public else f"{self._url}/api/v3"

    async def url(self, request: AuthorizationRequest) -> str:
        challenge = hashlib.sha256(request.verifier.encode()).digest()
        scopes = ["read:user", "user:email"]
        if self._method.asks_for_teams:
            scopes.append("read:org")
        parameters = {
            "client_id": self._method.client_id,
            "redirect_uri": request.redirect_url,
            "scope": " ".join(scopes),
            "state": request.state,
            "code_challenge": urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{self._url}/login/oauth/authorize?{urlencode(parameters)}"

    async def signed_in(
        self, request: AuthorizationRequest, answer: Mapping[str, str]
    ) -> ProviderSignIn:
        form = {
            "client_id": self._method.client_id,
            "client_secret": self._secret(),
            "code": answer.get("code", ""),
            "redirect_uri": request.redirect_url,
            "code_verifier": request.verifier,
        }
        tokens = await self._web.post(f"{self._url}/login/oauth/access_token", form)
        token = tokens.get("access_token") if isinstance(tokens, dict) else None
        if not isinstance(token, str):
            raise NotProven("the response has no access token")
        user = await self._asked("/user", token)
        if not isinstance(user, dict) or not isinstance(user.get("id"), int):
            raise NotProven("the response isn't a user")
        address = await self._address(token)
        groups = await self._groups(token) if self._method.asks_for_teams else None
        wanted = {organization.lower() for organization in self._method.organizations}
        if wanted and wanted.isdisjoint(groups or ()):
            raise NotProven(f"{user.get('login')} isn't a member of an allowed organization")
        return ProviderSignIn(
            identity=ProvenIdentity(
                method=self._method.name,
                # A user name can change, and then be taken by someone else.
                subject=self._method.subject(str(user["id"])),
                address=address,
                is_address_verified=bool(address),
                full_name=str(user.get("name") or user.get("login") or ""),
                groups=groups,
            )
        )

    async def logout_url(self, back: str) -> str:
        return ""

    async def logged_out(self, token: str) -> ProviderLogout:
        raise NotProven("GitHub doesn't send logout tokens")

    async def check(self) -> str:
        self._secret()
        await self._web.get(f"{self._api}/meta")
        return f"{self._api} responds"

    def _secret(self) -> str:
        try:
            return self._method.secret()
        except (OSError, ValueError) as error:
            raise self._web.down(f"the client's secret can't be read: {error}") from None

    async def _asked(self, path: str, token: str) -> Any:
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        return await self._web.get(self._api + path, headers)

    async def _address(self, token: str) -> str:
        """Return the primary address, or an empty text if it isn't verified."""
        response = await self._asked("/user/emails", token)
        for value in response if isinstance(response, list) else ():
            if (
                isinstance(value, dict)
                and value.get("primary") is True
                and value.get("verified") is True
            ):
                return str(value.get("email") or "")
        return ""

    async def _groups(self, token: str) -> frozenset[str]:
        """Return the person's organizations, and their teams as `organization/team`, in
        lowercase."""
        organizations = await self._asked("/user/orgs?per_page=100", token)
        teams = await self._asked("/user/teams?per_page=100", token)
        result = {str(organization["login"]).lower() for organization in organizations}
        result |= {f"{team['organization']['login']}/{team['slug']}".lower() for team in teams}
        return frozenset(result)
