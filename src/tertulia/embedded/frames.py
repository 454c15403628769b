"""What a bot's process and its node send each other: frames, each behind its length (see
`workers/process.py`)."""

from typing import Any, Final

import msgspec
from msgspec import Struct

MAX_FRAME: Final = 8 * 1024 * 1024


class StartBot(Struct, frozen=True, kw_only=True, tag="begin"):
    """To the process, first of all: which bot it is."""

    program: str
    module: str
    user_id: int
    email: str
    full_name: str
    settings: dict[str, str]
    networks: str
    """Where it may connect to although that is not on the internet: see `outbound/addresses.py`."""
    data_dir: str
    """The server's, which is nothing to it."""
    start_seconds: float
    """What it may take to begin, on the clock."""
    seconds: float
    processor: float
    """What it may take for one message, on the clock and of the processor."""


class HandleMessage(Struct, frozen=True, kw_only=True, tag="tell"):
    """To the process: handle this message, as `GET /messages/{id}` has it."""

    message: dict[str, Any]


class Operation(Struct, frozen=True, kw_only=True, tag="ask"):
    """To the node: do this as the bot."""

    operation: str
    fields: dict[str, Any]


class OperationResult(Struct, frozen=True, kw_only=True, tag="answer"):
    """To the process: what the node's interface says to that."""

    said: dict[str, Any]


class Finished(Struct, frozen=True, kw_only=True, tag="done"):
    """To the node: it has begun, or the message is handled; or how that failed."""

    error: str = ""
    ends: bool = False
    """Whether that is the last that it says."""


ToProcess = StartBot | HandleMessage | OperationResult
ToNode = Operation | Finished
to_process: Final = msgspec.msgpack.Decoder(ToProcess)
to_node: Final = msgspec.msgpack.Decoder(ToNode)
