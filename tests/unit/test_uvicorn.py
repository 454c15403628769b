"""The internals of uvicorn that this server uses, by name.

The HTTP server is built on uvicorn's (docs/decisions/0017-polls.md), so its version is bounded. To
try another version, install it and run this test and `tests/wire`: a missing name must be replaced,
and a new one may collide with one of ours.
"""

import ast
import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tests.unit.test_architecture import ROOT


@dataclass(frozen=True)
class Base:
    """A uvicorn class that one of ours extends."""

    make: Callable[[], object]
    parameters: str
    files: tuple[str, ...]
    """Our files that use it."""
    used: str
    unused: str


BASES = {
    "protocol": Base(
        lambda: HttpToolsProtocol(_config(), ServerState(), {}, Mock()),
        "config server_state app_state _loop",
        ("wire/protocol/http1.py", "wire/protocol/client_connection.py"),
        used="_start_asgi_task _unset_keepalive_if_required access_logger app app_state"
        " asgi_version client cycle expect_100_continue flow headers logger loop on_body on_header"
        " on_headers_complete on_message_begin on_message_complete on_response_complete on_url"
        " parser pipeline scheme scope send_400_response server server_state timeout_keep_alive"
        " timeout_keep_alive_handler timeout_keep_alive_task transport",
        unused="_get_upgrade _should_upgrade _should_upgrade_to_ws _unsupported_upgrade_warning"
        " access_log config connections handle_websocket_upgrade limit_concurrency root_path"
        " shutdown tasks ws_protocol_class",
    ),
    "exchange": Base(
        lambda: RequestResponseCycle(*[Mock()] * 11),
        "scope transport flow logger access_logger access_log default_headers message_event"
        " expect_100_continue keep_alive on_response",
        (
            "wire/protocol/http1.py",
            "wire/protocol/client_connection.py",
            "wire/protocol/exchange.py",
        ),
        used="access_logger body chunked_encoding default_headers disconnected"
        " expected_content_length flow keep_alive logger message_event more_body on_response"
        " response_complete response_started run_asgi scope send transport"
        " waiting_for_100_continue",
        unused="access_log receive send_500_response",
    ),
    "flow": Base(
        lambda: FlowControl(Mock()),
        "transport",
        ("wire/protocol/http1.py", "wire/protocol/client_connection.py"),
        used="_transport pause_reading read_paused resume_reading write_paused",
        unused="_is_writable_event drain",
    ),
    "server": Base(
        lambda: uvicorn.Server(_config()),
        "config",
        ("app/serving/http_server.py",),
        used="capture_signals config handle_exit on_tick server_state should_exit shutdown startup",
        unused="_captured_signals _log_started_message _serve _wait_tasks_to_complete force_exit"
        " last_notified limit_max_requests main_loop run serve started",
    ),
}


def _config() -> uvicorn.Config:
    return uvicorn.Config(lambda: None, ws="none", lifespan="off", log_config=None)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_uvicorn_has_the_internals_we_use(base: Base) -> None:
    made = base.make()
    offered = {name for name in {*dir(type(made)), *vars(made)} if not name.startswith("__")}
    offered -= set(dir(asyncio.Protocol))
    used, unused = set(base.used.split()), set(base.unused.split())
    version = f"uvicorn {uvicorn.__version__}"
    assert used <= offered, f"{version} no longer has {used - offered}"
    assert offered <= used | unused, (
        f"{version} also has {offered - used - unused}: do they collide?"
    )
    assert list(inspect.signature(type(made)).parameters) == base.parameters.split(), version
    ours = set[str]().union(*(_names_in(file) for file in base.files))
    assert offered & ours <= used, f"list what is used of {version}: {offered & ours - used}"
    assert used <= ours, f"no longer used of {version}: {used - ours}"


def _names_in(file: str) -> set[str]:
    """The attributes that one of our source files reads, sets, and defines."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        match node:
            case ast.Attribute(attr=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
    return found
