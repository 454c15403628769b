"""All integrations: a module for each service or kind of service."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.incoming import Integration
from tertulia.integrations.services import (
    alerts,
    bitbucket,
    builds,
    generic,
    gitea,
    github,
    gitlab,
    incidents,
    jira,
    monitoring,
    notion,
    sentry,
    stripe,
    tasks,
)

_MODULES: Final = (
    *(alerts, bitbucket, builds, generic, gitea, github, gitlab),
    *(incidents, jira, monitoring, notion, sentry, stripe, tasks),
)
_ALL: Final = [
    item for module in _MODULES for item in vars(module).values() if isinstance(item, Integration)
]
INTEGRATIONS: Final[Mapping[str, Integration]] = {
    integration.name: integration
    for integration in sorted(_ALL, key=lambda integration: integration.name)
}
"""Integrations by name."""
