"""Frames between a bot's process and its node, each preceded by its length (see
`workers/process.py`)."""

from typing import Any, Final

import msgspec
from msgspec import Struct

MAX_FRAME: Final = 8 * 1024 * 1024


class StartBot(Struct, frozen=True, kw_only=True, tag="begin"):
    """Sent to the process: start this bot."""

    program: str
    module: str
    user_id: int
    email: str
    full_name: str
    settings: dict[str, str]
    networks: str
    """Networks that it may connect to in addition to the internet: see `outbound/addresses.py`."""
    data_dir: str
    """The server's directory, which the bot mustn't read."""
    start_seconds: float
    """The time limit for starting."""
    seconds: float
    processor: float
    """The limits for one message: `seconds` of wall-clock time, and CPU time in seconds."""


class HandleMessage(Struct, frozen=True, kw_only=True, tag="tell"):
    """Sent to the process: handle a message, in the format of `GET /messages/{id}`."""

    message: dict[str, Any]


class Operation(Struct, frozen=True, kw_only=True, tag="ask"):
    """Sent to the node: perform an operation as the bot."""

    operation: str
    fields: dict[str, Any]


class OperationResult(Struct, frozen=True, kw_only=True, tag="answer"):
    """Sent to the process: the API's response."""

    said: dict[str, Any]


class Finished(Struct, frozen=True, kw_only=True, tag="done"):
    """Sent to the node: the bot has started or handled the message, or failed."""

    error: str = ""
    ends: bool = False
    """Whether the process ends."""


ToProcess = StartBot | HandleMessage | OperationResult
ToNode = Operation | Finished
to_process: Final = msgspec.msgpack.Decoder(ToProcess)
to_node: Final = msgspec.msgpack.Decoder(ToNode)
