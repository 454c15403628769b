"""How bots' services are reached."""

from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config


def services_web(config: Config) -> Web:
    """By any port, at public addresses and those that the operator lists."""
    networks = addresses.networks(config.outgoing_webhook_networks)
    return Web(config.external_url, ports=None, networks=networks)
