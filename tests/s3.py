"""An S3 server for tests: a separate process that checks signatures and fails on request.

    with server(tmp_path) as s3:
        s3.trouble(Trouble(methods="GET", status=503, times=2))

The server is `nanio`, with the `response-…` parameters of S3 added, which set response headers in
signed URLs.
"""

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qsl

import httpx

from tertulia.service.node import Node
from tertulia.store.s3_addresses import s3_address

ACCESS_KEY = "tests-access-key"
SECRET_KEY = "tests/secret+key"
BUCKET = "files"
REGION = "eu-central-1"
_CONTROL = "/-/trouble"
_READY = "S3 at "


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A fault of requests whose method is one of `methods` and whose path contains `part`."""

    methods: str = "GET HEAD PUT POST DELETE"
    part: str = ""
    times: int = 1_000_000
    """The number of requests that fail before the fault ends."""
    status: int = 0
    """The status of the response. The request isn't carried out."""
    wait: float = 0
    """Seconds before the response starts."""
    cut: bool = False
    """Whether the response ends in the middle of its first chunk."""
    short: bool = False
    """Whether the response contains half of the data and claims to be complete."""


_running: list["S3Server"] = []


class S3Server:
    """The running server."""

    def __init__(self, port: int, directory: Path) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.directory = directory

    def url(self, prefix: str = "") -> str:
        """The setting `files_url`."""
        path = f"/{prefix}" if prefix else ""
        return f"s3://{BUCKET}{path}?endpoint={self.endpoint}&region={REGION}"

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The objects in the bucket, without nanio's own metadata."""
        root = self.directory / BUCKET / prefix
        return {
            place.relative_to(root).as_posix(): place.read_bytes()
            for place in sorted(root.rglob("*"))
            if place.is_file() and ".nanio" not in place.as_posix()
        }

    def put(self, path: str, content: bytes | None) -> None:
        """Write an object directly; None deletes it."""
        place = self.directory / BUCKET / path
        if content is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def head(self, path: str) -> Mapping[str, str]:
        """The headers of an object that is fetched at its plain URL."""
        # (Imported here, because few processes need it.)
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            BUCKET,
            endpoint=self.endpoint,
            region=REGION,
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            client_options={"allow_http": True},
        )
        address = obstore.sign(store, "GET", path, timedelta(seconds=60))
        return httpx.get(address).raise_for_status().headers

    def trouble(self, *troubles: Trouble) -> None:
        """From now on, inject only this fault."""
        body = json.dumps([asdict(one) for one in troubles])
        httpx.put(self.endpoint + _CONTROL, content=body).raise_for_status()

    def requests(self) -> Counter[str]:
        """The number of requests by method since the last call."""
        return Counter(httpx.get(self.endpoint + _CONTROL).json())


@contextlib.contextmanager
def server(directory: Path) -> Iterator[S3Server]:
    """An S3 server with one empty bucket, in this directory."""
    (directory / BUCKET).mkdir(parents=True)
    environment = {**os.environ, "NANIO_ACCESS_KEY": ACCESS_KEY, "NANIO_SECRET_KEY": SECRET_KEY}
    command = [sys.executable, "-m", "tests.s3", str(directory)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(_READY)
            running = S3Server(int(line.removeprefix(_READY)), directory)
            _running.append(running)
            yield running
        finally:
            _running.clear()
            process.kill()


def files_of(node: Node) -> list[PurePath]:
    """A node's files, both on disk and in its bucket."""
    found: list[PurePath] = [p for p in node.disk.root.rglob("*") if p.is_file()]
    address = s3_address(node.config.files_url)
    if address is not None:
        found += [PurePath(path) for path in _running[0].objects(address.prefix)]
    return sorted(found)


# The server's process


class _Troubled:
    """The application, with faults."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._troubles: list[dict[str, Any]] = []
        self._requests: Counter[str] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == _CONTROL:
            await self._control(scope["method"], receive, send)
        else:
            self._requests[scope["method"]] += 1
            await self._answer(scope, receive, send)

    async def _control(self, method: str, receive: Any, send: Any) -> None:
        answer = b"{}"
        if method == "GET":
            answer = json.dumps(self._requests).encode()
            self._requests.clear()
        else:
            self._troubles = json.loads((await receive())["body"])
        await _respond(send, 200, answer)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        wrong = self._wrong_with(scope["method"], scope["path"])
        if wrong is not None:
            await asyncio.sleep(wrong["wait"])
            if wrong["status"]:
                while (await receive()).get("more_body"):
                    pass
                await _respond(send, wrong["status"], b"<Error><Code>Trouble</Code></Error>")
                return
        wanted = {
            name.removeprefix("response-").encode(): value.encode()
            for name, value in parse_qsl(scope["query_string"].decode())
            if name.startswith("response-")
        }

        left = 0

        async def sending(message: Any) -> None:
            nonlocal left
            if message["type"] == "http.response.start" and message["status"] < 300:
                kept = [(k, v) for k, v in message["headers"] if k not in wanted]
                message = {**message, "headers": [*kept, *wanted.items()]}
            if wrong is not None and wrong["short"]:
                if message["type"] == "http.response.start":
                    headers = dict(message["headers"])
                    left = int(headers[b"content-length"]) // 2
                    headers[b"content-length"] = str(left).encode()
                    message = {**message, "headers": list(headers.items())}
                else:
                    body = message["body"][:left]
                    left -= len(body)
                    message = {**message, "body": body}
            if message["type"] == "http.response.body" and wrong is not None and wrong["cut"]:
                body = message["body"]
                await send({**message, "body": body[: len(body) // 2], "more_body": True})
                raise RuntimeError("cut")
            await send(message)

        with contextlib.suppress(RuntimeError):
            await self._app(scope, receive, sending)

    def _wrong_with(self, method: str, path: str) -> dict[str, Any] | None:
        for one in self._troubles:
            if method in one["methods"].split() and one["part"] in path and one["times"] > 0:
                one["times"] -= 1
                return one
        return None


async def _respond(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _serve(directory: str) -> None:
    import uvicorn
    from nanio.app import build_app
    from nanio.config import Settings

    logging.disable()
    app = _Troubled(build_app(Settings(data_dir=Path(directory), region=REGION)))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # From now on, clients that connect wait instead of being refused.
    print(f"{_READY}{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="critical", ws="none", lifespan="off")
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    _serve(sys.argv[1])
