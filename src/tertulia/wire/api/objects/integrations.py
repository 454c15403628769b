"""What services there are integrations for, on the wire."""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tertulia.integrations.incoming import Integration

BRANCHES: Final = "branches"
"""The option by which an address says of which branches pushes are told."""


@cache
def integration_objects() -> list[dict[str, Any]]:
    """All of them, by the names that people know them by."""
    from tertulia.integrations.catalog import INTEGRATIONS  # Reading them takes a moment.

    known = sorted(INTEGRATIONS.values(), key=lambda one: one.title.casefold())
    return [_integration(one) for one in known]


def _integration(integration: "Integration") -> dict[str, Any]:
    branches = {"key": BRANCHES, "label": "Only these branches", "input_type": "text"}
    return {
        "name": integration.name,
        "display_name": integration.title,
        "all_event_types": list(integration.events) or None,
        "config_options": [],
        "url_options": [branches] if integration.has_branches else [],
        "is_signed": integration.signature is not None,
        "takes_templates": integration.takes_templates,
    }
