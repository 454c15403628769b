"""How bots' services are reached."""

from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config
from tertulia.service.webhooks import calling
from tertulia.store import service_calls


def services_web(config: Config) -> Web:
    """By any port, at public addresses and those that the operator lists."""
    networks = addresses.networks(config.outgoing_webhook_networks)
    # So that no call waits for those of others, who have slow services.
    at_once = calling.AT_ONCE * service_calls.AT_ONCE
    return Web(config.external_url, ports=None, networks=networks, at_once=at_once)
