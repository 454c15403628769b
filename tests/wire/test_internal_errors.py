"""Internal errors reveal nothing but that they happened."""

import asyncio
import logging
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from tertulia.service.config import Config
from tertulia.wire.http.node import RequestLog
from tests.support import Organization


async def test_an_internal_error_is_logged_but_not_revealed(
    org: Organization, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def submit(*_: Any) -> None:
        raise RuntimeError("the secret cause")

    await org.channel("lounge", "ann")
    monkeypatch.setattr(org.node.log, "submit", submit)
    response = await org.http.post(
        "/api/v1/messages",
        data={"type": "stream", "to": "lounge", "topic": "t", "content": "x"},
        auth=(org["ann"].email, org["ann"].api_key),
    )
    assert response.status_code == 500
    assert response.json() == {
        "result": "error",
        "msg": "Something went wrong on the server.",
        "code": "INTERNAL_SERVER_ERROR",
    }
    (record,) = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert "the secret cause" in str(record.exc_info[1])


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_request_that_outlasts_the_server_gets_an_error(has_begun: bool) -> None:
    async def lasting(scope: Scope, receive: Receive, send: Send) -> None:
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    async def received() -> Message:
        raise AssertionError("nothing is read any more")

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    scope = {"type": "http", "method": "POST", "path": "/api/v1/user_uploads", "headers": []}
    answering = asyncio.ensure_future(RequestLog(lasting, Config())(scope, received, send))
    await asyncio.sleep(0)
    answering.cancel()
    if has_begun:
        # An incomplete response can only end with its connection.
        with pytest.raises(asyncio.CancelledError):
            await answering
        return
    await answering
    assert sent[0]["status"] == 503
    assert b"The server is shutting down." in sent[1]["body"]


async def test_reads_succeed_while_changes_cannot_be_written(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failed commit reloads the state. In the meantime, reads wait."""
    await org.channel("lounge", "ann")
    await org["ann"].send("lounge", "t", "before")
    store = org.node.store
    read_log, failures = store.read_log, 0

    async def full(*_: Any) -> None:
        nonlocal failures
        failures += 1
        raise OSError("the disk is full")

    async def slow(*arguments: Any) -> Any:
        await asyncio.sleep(0.05)
        return await read_log(*arguments)

    monkeypatch.setattr(store, "commit", full)
    monkeypatch.setattr(store, "read_log", slow)
    window = {"anchor": "newest", "num_before": 5, "num_after": 0}
    for number in range(3):
        change = asyncio.ensure_future(org["ann"].post("/users/me/status", status_text="out"))
        before = failures
        async with asyncio.timeout(60):
            while failures == before and not change.done():  # noqa: ASYNC110
                await asyncio.sleep(0)
        me, found = await asyncio.gather(
            org["ann"].get("/users/me"), org["ann"].get("/messages", **window)
        )
        assert me.ok["email"], number
        assert len(found.ok["messages"]) == 1
        (await change).refused("SERVER_NOT_READY", 503)
    assert failures
