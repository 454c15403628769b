"""The ZIP file with a person's data: JSON that people can read, files, and a page that lists
them."""

import asyncio
import html
import time
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tertulia.store.files import Files

Page = list[dict[str, Any]]
"""Objects to write."""

_TITLES: Final = {
    "account.json": "Your account",
    "activity.json": "Days on which you were active, and messages you sent on them",
    "bots.json": "Your bots",
    "channels.json": "Channels you are or were subscribed to",
    "emoji.json": "Custom emoji you added",
    "files.json": "Files you uploaded, which are in the folder files/",
    "groups.json": "User groups you are in",
    "invitations.json": "Invitations you sent",
    "log.json": "Your actions in the server's log",
    "pins.json": "Messages you pinned",
    "reactions.json": "Your reactions",
    "sessions.json": "Browsers you are signed in with",
    "stars.json": "Messages you starred",
    "topics.json": "Topics you follow, muted, or unmuted",
    "widgets.json": "Your polls, votes, and other entries in widgets",
}

_json: Final = msgspec.json.Encoder()


class PersonalArchive:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._contents: list[tuple[str, str, int]] = []
        """File names, titles, and numbers of entries."""

    async def write_list(self, name: str, pages: AsyncIterator[Page]) -> None:
        """Write an array with one object per line."""
        count = 0
        entry = zipfile.ZipInfo(name, time.gmtime()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        with self._archive.open(entry, "w", force_zip64=True) as file:
            file.write(b"[")
            async for page in pages:
                lines = [_json.encode(fields) for fields in page]
                before = b",\n" if count and lines else b"\n" if lines else b""
                await asyncio.to_thread(file.write, before + b",\n".join(lines))
                count += len(lines)
            file.write(b"\n]\n" if count else b"]\n")
        title = _TITLES.get(name) or name.partition(".")[0].replace("_", " ").capitalize()
        if name.startswith("messages-"):
            title = "Messages you sent"
        self._contents.append((name, title, count))

    async def copy(self, files: Files, path: str, name: str) -> None:
        """Copy a stored file, unless it no longer exists."""
        chunks = files.chunks(path)
        try:
            first = await anext(chunks, b"")
        except FileNotFoundError:
            return
        # Most large files are already compressed.
        entry = zipfile.ZipInfo(name, time.gmtime()[:6])
        with self._archive.open(entry, "w", force_zip64=True) as file:
            await asyncio.to_thread(file.write, first)
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)

    async def write_index(self, name: str, now: float) -> None:
        """Write the page that lists the files. `name` is its title."""
        lines = "".join(
            f'<tr><td><a href="{html.escape(file)}">{html.escape(file)}</a></td>'
            f"<td>{html.escape(title)}</td><td>{count:,}</td></tr>\n"
            for file, title, count in self._contents
        )
        title = html.escape(name)
        page = (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
            f"<h1>{title}</h1>\n<p>Exported on {utc_text(now)}. Each file is JSON:"
            " open it in a browser or a text editor. Times are in UTC. The files you uploaded are"
            " in the folder <code>files</code>. Passwords and keys aren't included.</p>\n"
            f"<table>\n<tr><th>File<th>Content<th>Entries</tr>\n{lines}</table>\n</html>\n"
        )
        await asyncio.to_thread(self._archive.writestr, "index.html", page)


def utc_text(at: float) -> str:
    """Return a UNIX time as text, such as `2026-11-28T18:45:00Z`."""
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
