"""Listening to PostgreSQL's notifications from other nodes."""

import asyncio
import contextlib
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import Any

import psycopg
from psycopg import sql as pgsql

from tertulia.store import broadcast, installation
from tertulia.store.notification_reader import NotificationReader
from tertulia.store.pipeline import has_ended
from tertulia.store.postgres_connection import PostgresConnection
from tertulia.store.postgres_dialect import CHANNEL

logger = logging.getLogger("tertulia.store")

_BROADCAST_BATCH = 100
"""The most broadcasts passed on together."""
_HEARTBEAT_SECONDS = 5
"""The number of seconds of silence after which a listening connection is checked."""
_RETRY_SECONDS = (0.2, 5.0)
"""Seconds between two attempts to listen: first, and at most."""


def watch(
    connect: Callable[[], PostgresConnection],
    on_growth: Callable[[int | None], None],
    on_peer_message: Callable[[str], None],
    on_broadcast: Callable[[Sequence[str]], None] | None,
    hearing: NotificationReader | None,
) -> Callable[[], None]:
    """Implement `Database.watch` on connections from `connect`."""
    stopping = threading.Event()
    stop, ring = socket.socketpair()
    is_away = False
    first, longest = _RETRY_SECONDS
    pause = first

    def notified(payloads: Sequence[str]) -> None:
        for are_told, some in groupby(payloads, key=lambda text: text.startswith(broadcast.PREFIX)):
            if not are_told:
                for payload in some:
                    heard(payload)
            elif on_broadcast is None:
                on_growth(None)
            else:
                while texts := list(islice(some, _BROADCAST_BATCH)):
                    on_broadcast(texts)

    def heard(payload: str) -> None:
        nonlocal is_away, pause
        if payload.isdigit():
            on_growth(int(payload))
        elif payload:
            on_peer_message(payload)
        else:
            if is_away:
                logger.info("PostgreSQL notifications work again")
            is_away = False
            pause = first
            on_growth(None)

    def listen() -> None:
        nonlocal is_away, pause
        while not stopping.is_set():
            try:
                with contextlib.closing(connect()) as connection:
                    _listen(connection, _channel(connection), notified, stop, hearing)
            except Exception as error:  # Retry after any error.
                if not is_away:
                    is_away = True
                    logger.warning(
                        "PostgreSQL notifications don't work",
                        extra={"fields": {"reason": error}},
                    )
                stopping.wait(pause)
                pause = min(pause * 2, longest)

    thread = threading.Thread(target=listen, name="postgres-listen", daemon=True)
    thread.start()

    def end() -> None:
        stopping.set()
        ring.close()  # The other end of the socket becomes readable.
        thread.join()
        stop.close()

    return end


def _listen(
    connection: PostgresConnection,
    channel: str,
    on_payloads: Callable[[Sequence[str]], None],
    stop: socket.socket,
    hearing: NotificationReader | None,
) -> None:
    """Call `on_payloads` with the channel's notifications, batched as they arrive, until `stop` is
    readable. The first call has an empty one, for notifications that came before.

    With a `hearing`, later calls run on its loop, because switching threads costs more than
    handling them.
    """
    connection.run(f"LISTEN {pgsql.Identifier(channel).as_string()}")
    on_payloads([""])

    def notified(notification: psycopg.Notify) -> None:
        # These arrived while this thread ran a statement.
        if hearing is None:
            on_payloads([notification.payload])
        else:
            hearing.loop.call_soon_threadsafe(on_payloads, [notification.payload])

    connection.driver.add_notify_handler(notified)
    while not (
        _until_silent(connection, on_payloads, stop)
        if hearing is None
        else _until_silent_on(connection, hearing, on_payloads, stop)
    ):
        connection.run("SELECT 1")  # Check the connection.


def _until_silent(
    connection: PostgresConnection,
    on_payloads: Callable[[Sequence[str]], None],
    stop: socket.socket,
) -> bool:
    """Return False after `_HEARTBEAT_SECONDS` of silence, or True to stop."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.driver, selectors.EVENT_READ)
        selector.register(stop, selectors.EVENT_READ)
        while ready := selector.select(_HEARTBEAT_SECONDS):
            if any(key.fileobj is stop for key, _ in ready):
                return True
            _take_notifications(connection, on_payloads)
    return False


def _until_silent_on(
    connection: PostgresConnection,
    hearing: NotificationReader,
    on_payloads: Callable[[Sequence[str]], None],
    stop: socket.socket,
) -> bool:
    """Do the same as `_until_silent` on the event loop, while this thread waits."""
    ended, end = socket.socketpair()
    failures: list[Exception] = []
    heard = time.monotonic()

    def read() -> bool:
        nonlocal heard
        heard = time.monotonic()
        try:
            _take_notifications(connection, on_payloads)
        except Exception as error:
            failures.append(error)
            end.send(b".")
        return not failures

    descriptor = connection.driver.fileno()
    with ended, end, selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        selector.register(stop, selectors.EVENT_READ)
        _on_loop(hearing.loop, lambda: hearing.attach(descriptor, read))
        try:
            while (left := heard + _HEARTBEAT_SECONDS - time.monotonic()) > 0:
                ready = selector.select(left)
                if any(key.fileobj is stop for key, _ in ready):
                    return True
                if failures:
                    raise failures[0]
        finally:
            # Only then can this thread use or close the connection.
            _on_loop(hearing.loop, hearing.detach)
    return False


def _take_notifications(
    connection: PostgresConnection, on_payloads: Callable[[Sequence[str]], None]
) -> None:
    """Pass on notifications that have arrived, without blocking."""
    raw = connection.driver.pgconn
    payloads: list[str] = []
    with connection.translating:
        raw.consume_input()
        while notification := raw.notifies():
            payloads.append(notification.extra.decode())
        while has_ended(raw.socket):
            raw.consume_input()  # Raises once nothing is left.
    if payloads:
        on_payloads(payloads)


def _channel(connection: PostgresConnection) -> str:
    installation.put_once(connection, installation.CHANNEL, secrets.token_hex(16))
    ((name,),) = connection.query(
        f"SELECT {CHANNEL} FROM installation WHERE key = ?", (installation.CHANNEL,)
    )
    return str(name)


def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
    """Call the function on the loop and wait for it. Does nothing if the loop is closed."""
    done = threading.Event()

    def call() -> None:
        try:
            function()
        finally:
            done.set()

    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return
    while not done.wait(1.0):
        if loop.is_closed():
            return
