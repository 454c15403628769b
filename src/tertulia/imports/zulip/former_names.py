"""The people, groups, and channels that the names in a message referred to when it was written,
from its HTML in the export.

The HTML itself isn't imported: it's for Zulip's clients, and can't be trusted.
"""

import html
import re
from typing import Any, Final

from tertulia.imports.records import Key, SourceNames
from tertulia.imports.zulip.rows import clean

_USER: Final = re.compile(
    r'<span class="user-mention[a-z -]{0,40}" data-user-id="([0-9]{1,15})">@?([^<>]{1,300})</span>'
)
_GROUP: Final = re.compile(
    r'<span class="user-group-mention[a-z -]{0,40}" data-user-group-id="([0-9]{1,15})">'
    r"@?([^<>]{1,300})</span>"
)
_CHANNEL: Final = re.compile(
    r'<a class="(?:stream|stream-topic|message-link)"(?: data-stream-id="[0-9]{1,15}")?'
    r' href="[^"#]{0,300}#narrow/(?:channel|stream)/([0-9]{1,15})-[^"]{0,2000}">#([^<>]{1,300})'
)
_EMOJI: Final = re.compile(r'<img alt=":([^":<>]{1,100}):" class="emoji"')


def names_in(content: Any, rendered: Any) -> SourceNames | None:
    """Return the names that the content mentions and links, according to its HTML; None if the HTML
    is missing or the content can't have any."""
    if not isinstance(content, str) or not isinstance(rendered, str) or not rendered:
        return None
    mentions, links, has_emoji = "@" in content, "#**" in content, ":" in content
    if not (mentions or links or has_emoji):
        return None
    channels = _found(_CHANNEL, rendered) if links else ()
    return SourceNames(
        users=_found(_USER, rendered) if mentions else (),
        groups=_found(_GROUP, rendered) if mentions else (),
        channels=tuple((name.partition(" > ")[0], key) for name, key in channels),
        emoji=tuple(dict.fromkeys(map(clean, _EMOJI.findall(rendered)))) if has_emoji else (),
    )


def _found(pattern: re.Pattern[str], rendered: str) -> tuple[tuple[str, Key], ...]:
    result = ((clean(html.unescape(name)), int(key)) for key, name in pattern.findall(rendered))
    return tuple(dict.fromkeys(result))
