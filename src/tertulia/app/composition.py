"""The composition root: the parts of a node, and how it starts and stops."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from tertulia.app.founding import NoOrganization, opened_log, opened_vault, require_fitting
from tertulia.delivery.delivery import Delivery
from tertulia.jobs.registry import jobs_of
from tertulia.jobs.supervisor import JobSupervisor
from tertulia.jobs.upkeep import reporter, troubles
from tertulia.log.log import Log
from tertulia.markup.render import Renderer
from tertulia.outbound.http_client import Web
from tertulia.outbound.web_push import PushKey
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.links import Links, external_media
from tertulia.service.membership import Membership
from tertulia.service.messages.sending import SENDING
from tertulia.service.notifications.push import push_services_web
from tertulia.service.previous_server import previous_server
from tertulia.service.webhooks.calling import services_web
from tertulia.store.store import READ_SECONDS
from tertulia.wire.api.embedded_bots import bot_interface
from tertulia.wire.api.event_encoder import EventEncoder
from tertulia.wire.api.projections import PROJECTIONS
from tertulia.wire.api.reached_events import is_reached
from tertulia.wire.api.transients import TypingAndPresence
from tertulia.wire.api.webhooks import encoded_call
from tertulia.wire.application import application
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.rate_limits import RateLimits
from tertulia.wire.mail.server import mail_server


@asynccontextmanager
async def opened_organization(
    config: Config,
    report: Callable[[str], None],
    *,
    on_peer_message: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    membership: Membership | None = None,
) -> AsyncIterator[tuple[Log, Vault]]:
    """Open the log and the vault of an existing organization.

    Raise NoOrganization if it doesn't exist, and VaultError if the secret doesn't match.
    """
    async with opened_log(
        config,
        report,
        on_peer_message=on_peer_message,
        clock=clock,
        elapsed=elapsed,
        membership=membership,
        absent=NoOrganization(config.database_location),
    ) as log:
        if log.state.is_empty:
            raise NoOrganization(config.database_location)
        vault = opened_vault(config)
        try:
            await require_fitting(log, vault)
            yield log, vault
        finally:
            vault.close()


@asynccontextmanager
async def opened_node(
    config: Config,
    report: Callable[[str], None],
    *,
    residents: Iterable[str] = (),
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    web: Web | None = None,
    services: Web | None = None,
    push_web: Web | None = None,
) -> AsyncIterator[HttpNode]:
    """Open a node that is ready to serve. `residents` are the addresses of a demo's accounts. `web`
    fetches links and files, `services` calls bots' services, and `push_web` push services; the node
    closes them."""
    membership = Membership(config, clock=clock)
    deliveries: list[Delivery] = []
    """Filled when the log is open."""

    def on_peer_message(text: str) -> None:
        for delivery in deliveries:
            delivery.peer_messages.on_text(text)

    opened = opened_organization(
        config,
        report,
        on_peer_message=on_peer_message,
        clock=clock,
        elapsed=elapsed,
        membership=membership,
    )
    async with opened as (log, vault):
        log.forwarding.allow(SENDING)
        delivery = delivery_of(config, log, vault)
        deliveries.append(delivery)
        await delivery.open()
        links = Links(vault)
        files, disk = config.opened_files()
        supervisor = JobSupervisor(reporter(log, await log.store.read_log(troubles, READ_SECONDS)))
        node = HttpNode(
            config=config,
            log=log,
            delivery=delivery,
            vault=vault,
            links=links,
            renderer=Renderer(config.external_url, external_media(config, links)),
            files=files,
            disk=disk,
            web=web or Web(config.external_url),
            services=services or services_web(config),
            push_web=push_web or push_services_web(config),
            previous_server=previous_server(config),
            push_key=PushKey(vault.push_seed),
            clock=log.clock,
            started=log.clock(),
            limits=RateLimits(config, log, delivery.peer_messages, vault),
            membership=membership,
            residents=tuple(residents),
            failing_jobs=supervisor.failing,
            jobs=supervisor.figures,
        )
        try:
            jobs = jobs_of(node, encoded_call, bot_interface(node, application))
            async with supervisor.running(jobs), mail_server(node):
                membership.serving(delivery)
                yield node
        finally:
            await delivery.close()
            await node.close()


def delivery_of(config: Config, log: Log, vault: Vault) -> Delivery:
    """Return the delivery for the log, not yet open."""
    transients = TypingAndPresence(limited=config.can_access_all_users_group_limits_presence)
    encoder = EventEncoder(
        lambda: log.state, config, PROJECTIONS, transients, is_reached, vault.unsealed
    )
    longest = config.event_queue_longpoll_timeout_seconds
    return Delivery(
        log,
        encoder,
        poll_seconds=(longest * 0.5, longest * 0.6),
        queues_per_user=config.queues_per_user,
    )


def asgi(node: HttpNode) -> ASGIApp:
    return application(node)
