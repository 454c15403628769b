"""The configured identity providers that redirect the browser."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tertulia.identity.provider import NotProven, Provider, ProviderDown, ProviderWeb
from tertulia.outbound.addresses import networks
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config
from tertulia.service.provider_methods import GithubMethod, SamlMethod
from tertulia.service.sign_in_methods import SignInMethod

if TYPE_CHECKING:
    from tertulia.identity.saml import SamlProvider

_NETWORKS: Final = "0.0.0.0/0, ::/0"
"""Allowed networks. The operator configures the addresses, so private ones and this machine are
allowed."""


class Providers:
    """The configured providers, each created at first use."""

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        self._methods = config.sign_in
        self._site = config.external_url
        self._clock = clock
        self._web: Web | None = None
        self._made: dict[str, Provider] = {}
        self._saml: dict[str, SamlProvider] = {}

    def __getitem__(self, method: SignInMethod) -> Provider:
        """Return the provider of a method with `IS_REDIRECTING`."""
        if method.name not in self._made:
            self._made[method.name] = _made(method, self._web_of(method), self._clock)
        return self._made[method.name]

    def saml(self, method: SamlMethod) -> "SamlProvider":
        """Return the provider of a SAML method."""
        if method.name not in self._saml:
            from tertulia.identity.saml import SamlProvider  # Imported only if used.

            self._saml[method.name] = SamlProvider(method, self._site, self._web_of(method))
        return self._saml[method.name]

    def _web_of(self, method: SignInMethod) -> ProviderWeb:
        if self._web is None:
            self._web = Web(self._site, ports=None, networks=networks(_NETWORKS))
        return ProviderWeb(method.label, self._web)

    async def has_logout(self, method: SignInMethod) -> bool:
        """Whether people can also sign out at the method's provider. Raises ProviderDown."""
        if isinstance(method, SamlMethod):
            return await self.saml(method).has_logout()
        return method.IS_REDIRECTING and bool(await self[method].logout_url(""))

    async def check_all(self) -> Mapping[str, str | ProviderDown]:
        """Query all providers, and return the results or errors by the methods' names."""

        async def ask(method: SignInMethod) -> str | ProviderDown:
            try:
                if isinstance(method, SamlMethod):
                    return await self.saml(method).check()
                return await self[method].check()
            except ProviderDown as error:
                return error
            except NotProven as error:
                return ProviderDown(method.label, str(error))

        asked = [
            method
            for method in self._methods
            if method.IS_REDIRECTING or isinstance(method, SamlMethod)
        ]
        answers = await asyncio.gather(*map(ask, asked))
        return {method.name: answer for method, answer in zip(asked, answers, strict=True)}

    async def close(self) -> None:
        if self._web is not None:
            await self._web.close()


def _made(method: SignInMethod, web: ProviderWeb, clock: Callable[[], float]) -> Provider:
    # Imported only if used.
    if isinstance(method, GithubMethod):
        from tertulia.identity.github import Github

        return Github(method, web)
    from tertulia.identity.openid import OpenidProvider, settings_of

    return OpenidProvider(settings_of(method), web, clock)
