"""What is told of a mistake of the server's own: nothing but that there was one."""

import logging
from typing import Any

import pytest

from tests.support import Organization


async def test_a_mistake_is_logged_and_not_told(
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
