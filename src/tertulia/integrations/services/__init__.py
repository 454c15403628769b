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
    one for module in _MODULES for one in vars(module).values() if isinstance(one, Integration)
]
INTEGRATIONS: Final[Mapping[str, Integration]] = {
    one.name: one for one in sorted(_ALL, key=lambda one: one.name)
}
"""Integrations by name."""
