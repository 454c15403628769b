"""The organization on the wire."""

from tertulia.model.realm import Realm

ICON_PATH = "/static/icon.svg"


def realm_icon_url(realm: Realm) -> str:
    """Where the organization's picture is."""
    return f"{ICON_PATH}?version=1"
