"""What a worker's process and the server send each other: frames, each behind its length."""

from typing import Final

import msgspec

HEADER: Final = 4
"""Bytes of a frame's length."""
MAX_FRAME: Final = 128 * 1024 * 1024


class Request(msgspec.Struct, array_like=True):
    """What is to be done."""

    function: str
    """`module:function`."""
    load: str
    """The same, called before and with the same arguments; its time does not count. May be
    empty."""
    seconds: float
    """Of the processor, that it may take."""
    arguments: list[object]


class Response(msgspec.Struct, array_like=True):
    """What has become of it."""

    seconds: float
    """Of the processor, that it took."""
    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    """What the function returned."""
    error: str = ""
    """The name of the exception's class; empty where there was none."""
    text: str = ""
    """What the exception says."""


def framed(frame: msgspec.Struct) -> bytes:
    """The frame as bytes, with its length. ValueError where it is too long."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME:
        raise ValueError("a frame is too long")
    return len(content).to_bytes(HEADER, "big") + content
