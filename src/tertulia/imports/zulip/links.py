"""Links and mentions in Zulip's texts."""

import re
from typing import Final

from tertulia.imports import references

_CODE: Final = r"`{3,}[\s\S]*?(?:`{3,}|\Z)|~{3,}[\s\S]*?(?:~{3,}|\Z)|`[^`\n]*`"
_PATHS: Final = r"(?:/?#narrow/|/user_uploads/)"
_MENTIONED: Final = re.compile(r"(@_?\*\*[^*|\n]{0,200}\|)([0-9]{1,15})(?=\*\*)")
_NARROW: Final = re.compile(r"(\]\(/?#narrow/(?:channel|stream)/)([0-9]{1,15})\b")


class LocalLinks:
    """Makes links to the other server's messages and files relative, so that they lead to the
    imported ones. Code stays unchanged."""

    def __init__(self, host: str) -> None:
        self._begins = f"://{host}" if host else ""
        self._link = re.compile(
            rf"({_CODE})"
            rf"|(\]\(|\]: *<?)https?://{re.escape(host)}({_PATHS})"
            rf"|https?://{re.escape(host)}({_PATHS}[^\s<>()\[\]`\"']*)",
            re.IGNORECASE,
        )

    def local(self, content: str) -> str:
        """Return the text with relative links."""
        if not self._begins or self._begins not in content.lower():
            return content
        return self._link.sub(_relative, content)

    def of_message(self, content: str) -> str:
        """Return a message's text with relative links, and with references in place of the IDs of
        users and channels, which can change in an existing organization."""
        result = self.local(content)
        if "|" in result:
            result = _MENTIONED.sub(lambda m: m[1] + references.user_id(int(m[2])), result)
        if "#narrow/" in result:
            result = _NARROW.sub(lambda m: m[1] + references.channel_id(int(m[2])), result)
        return result


def _relative(match: re.Match[str]) -> str:
    code, begins, path, bare = match.groups()
    if code is not None:
        return code
    if begins is not None:
        return begins + _absolute(path)
    return f"[{match[0]}]({_absolute(bare)})"


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
