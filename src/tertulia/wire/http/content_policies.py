"""Content security policies that several pages have."""

from typing import Final

NOTHING: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Of answers that are no pages, should a browser be led to show one: it loads and runs nothing, and
is shown within no other page."""
PICTURE: Final = f"{NOTHING}; sandbox"
"""Of pictures."""
