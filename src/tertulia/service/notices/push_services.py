"""Which push services are asked, and how."""

from tertulia.outbound import addresses
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config


def push_services_web(config: Config) -> Web:
    """By any port, at public addresses and those that the operator lists. What is pushed twice has
    the same topic, and takes its own place."""
    networks = addresses.networks(config.web_push_networks)
    return Web(config.external_url, ports=None, networks=networks, keeps=True)


def may_be_plain(config: Config, host: str) -> bool:
    """Whether the host may be asked without TLS: a machine of the operator's, by its number."""
    address = addresses.parsed(host)
    return address is not None and any(
        address in network for network in addresses.networks(config.web_push_networks)
    )
