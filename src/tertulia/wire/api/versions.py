"""What this server says that it is: the interface's version, for clients that compare it."""

from typing import Final

FEATURE_LEVEL: Final = 496
SERVICE_VERSION: Final = "12.0"
"""The release whose interface this is; clients refuse what looks older than they support."""
MERGE_BASE: Final = SERVICE_VERSION
