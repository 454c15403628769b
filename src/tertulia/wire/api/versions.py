"""The versions that clients check for compatibility."""

from typing import Final

FEATURE_LEVEL: Final = 496
SERVICE_VERSION: Final = "12.0"
"""The Zulip release with the same API. Clients refuse versions older than they support."""
MERGE_BASE: Final = SERVICE_VERSION
