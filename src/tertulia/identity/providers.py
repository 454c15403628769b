"""The configured identity providers that people are sent to, and come back from with a code."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from tertulia.identity.provider import NotProven, Provider, ProviderDown, ProviderWeb
from tertulia.outbound.addresses import networks
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config
from tertulia.service.sign_in_methods import GithubMethod, SignInMethod

_NETWORKS: Final = "0.0.0.0/0, ::/0"
"""The operator sets the addresses, so they may be private, or this machine."""


class Providers:
    """The configured providers, each created at first use."""

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        self._methods = {method.name: method for method in config.sign_in}
        self._site = config.external_url
        self._clock = clock
        self._web: Web | None = None
        self._made: dict[str, Provider] = {}

    def method(self, name: str) -> SignInMethod | None:
        """The method with this name."""
        return self._methods.get(name)

    def __getitem__(self, method: SignInMethod) -> Provider:
        if method.name not in self._made:
            if self._web is None:
                self._web = Web(self._site, ports=None, networks=networks(_NETWORKS))
            web = ProviderWeb(method.label, self._web)
            self._made[method.name] = _made(method, web, self._clock)
        return self._made[method.name]

    async def checked(self) -> Mapping[str, str | ProviderDown]:
        """Ask all providers, and return the answers, or errors, by the methods' names."""

        async def ask(method: SignInMethod) -> str | ProviderDown:
            try:
                return await self[method].check()
            except ProviderDown as error:
                return error
            except NotProven as error:
                return ProviderDown(method.label, str(error))

        asked = [method for method in self._methods.values() if method.IS_REDIRECTING]
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
