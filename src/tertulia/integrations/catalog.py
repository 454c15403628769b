"""All integrations."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.incoming import Integration
from tertulia.integrations.services.alerts import ALERTMANAGER, GRAFANA, PROMETHEUS
from tertulia.integrations.services.asana import ASANA
from tertulia.integrations.services.bitbucket import BITBUCKET, BITBUCKET_SERVER
from tertulia.integrations.services.builds import (
    ANSIBLE_TOWER,
    CIRCLECI,
    HEROKU,
    JENKINS,
    NETLIFY,
    TRAVIS,
)
from tertulia.integrations.services.generic import HOME_ASSISTANT, IFTTT, JSON, ZAPIER
from tertulia.integrations.services.gitea import FORGEJO, GITEA, GOGS
from tertulia.integrations.services.github import GITHUB
from tertulia.integrations.services.gitlab import GITLAB
from tertulia.integrations.services.incidents import OPSGENIE, PAGERDUTY, STATUSPAGE
from tertulia.integrations.services.jira import JIRA
from tertulia.integrations.services.linear import LINEAR
from tertulia.integrations.services.monitoring import (
    AIRBRAKE,
    DATADOG,
    FRESHPING,
    NEW_RELIC,
    PINGDOM,
    SPLUNK,
    UPTIME_KUMA,
    UPTIME_ROBOT,
    ZABBIX,
)
from tertulia.integrations.services.notion import NOTION
from tertulia.integrations.services.sentry import SENTRY
from tertulia.integrations.services.slack import SLACK
from tertulia.integrations.services.stripe import STRIPE
from tertulia.integrations.services.trello import TRELLO

_ALL: Final = (
    *(AIRBRAKE, ALERTMANAGER, ANSIBLE_TOWER, ASANA, BITBUCKET, BITBUCKET_SERVER, CIRCLECI),
    *(DATADOG, FORGEJO, FRESHPING, GITEA, GITHUB, GITLAB, GOGS, GRAFANA, HEROKU, HOME_ASSISTANT),
    *(IFTTT, JENKINS, JIRA, JSON, LINEAR, NETLIFY, NEW_RELIC, NOTION, OPSGENIE, PAGERDUTY),
    *(PINGDOM, PROMETHEUS, SENTRY, SLACK, SPLUNK, STATUSPAGE, STRIPE, TRAVIS, TRELLO),
    *(UPTIME_KUMA, UPTIME_ROBOT, ZABBIX, ZAPIER),
)

INTEGRATIONS: Final[Mapping[str, Integration]] = {one.name: one for one in _ALL}
"""Integrations by name."""
