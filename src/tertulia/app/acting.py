"""Acting on an organization from the command line, as its owner, with the verbs that the API
uses."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tertulia.app.composition import delivery_of, opened_organization
from tertulia.domain.accounts.users import first_owner
from tertulia.markup.render import Renderer
from tertulia.outbound.http_client import Web
from tertulia.outbound.web_push import PushKey
from tertulia.service.config import Config
from tertulia.service.links import Links, external_media
from tertulia.service.membership import Membership
from tertulia.service.node import Caller, Node
from tertulia.service.notifications.push import push_services_web
from tertulia.service.webhooks.calling import services_web


@asynccontextmanager
async def opened_caller(config: Config, report: Callable[[str], None]) -> AsyncIterator[Caller]:
    """Open the organization and yield a caller that acts as its first owner. Servers can be running
    at the same time: this node isn't listed, and runs no jobs. Raise as `opened_organization`;
    Refused if there is no owner."""
    async with opened_organization(config, report) as (log, vault):
        links = Links(vault)
        files, disk = config.opened_files()
        node = Node(
            config=config,
            log=log,
            delivery=delivery_of(config, log, vault),
            vault=vault,
            links=links,
            renderer=Renderer(config.external_url, external_media(config, links)),
            files=files,
            disk=disk,
            web=Web(config.external_url),
            services=services_web(config),
            push_web=push_services_web(config),
            push_key=PushKey(vault.push_seed),
            clock=log.clock,
            started=log.clock(),
            membership=Membership(config),
        )
        try:
            yield Caller(node=node, user_id=first_owner(log.state))
        finally:
            await node.close()
