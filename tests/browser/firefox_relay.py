"""`python -m tests.browser.firefox_relay`: the installed Firefox, for Playwright.

Playwright speaks WebDriver BiDi with it, at the address that the browser prints. This prints
another address, passes everything on, and answers what this Firefox can't do yet.
"""

import asyncio
import json
import re
import sys

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

PROGRAM = "firefox-esr"
_LACKING = "emulation.setMediaFeaturesOverride"
_SAYS = "WebDriver BiDi listening on "
_ADDRESS = re.compile(rf"{_SAYS}(ws://\S+)")


async def _commands(playwright: ServerConnection, firefox: ClientConnection) -> None:
    async for text in playwright:
        command = json.loads(text)
        if command["method"] == _LACKING:
            done = {"type": "success", "id": command["id"], "result": {}}
            await playwright.send(json.dumps(done))
        else:
            await firefox.send(text)


async def _events(playwright: ServerConnection, firefox: ClientConnection) -> None:
    async for text in firefox:
        await playwright.send(text)


async def _run(arguments: list[str]) -> int:
    """Run the browser until it ends. Return its exit code."""
    browser = await asyncio.create_subprocess_exec(
        PROGRAM, *arguments, stderr=asyncio.subprocess.PIPE
    )
    assert browser.stderr
    address = ""
    while not address and (line := await browser.stderr.readline()):
        if found := _ADDRESS.search(line.decode(errors="replace")):
            address = found[1]
    if not address:
        return await browser.wait()

    async def connected(playwright: ServerConnection) -> None:
        path = playwright.request.path if playwright.request else ""
        async with connect(address + path, max_size=None, ping_interval=None) as firefox:
            both = [
                asyncio.create_task(_commands(playwright, firefox)),
                asyncio.create_task(_events(playwright, firefox)),
            ]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in both:
                task.cancel()

    async with serve(connected, "127.0.0.1", 0, max_size=None, ping_interval=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(f"{_SAYS}ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
        while await browser.stderr.readline():
            pass
        return await browser.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(sys.argv[1:])))
