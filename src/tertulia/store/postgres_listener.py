"""What other nodes tell by PostgreSQL's notifications."""

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

_TOLD_AT_ONCE = 100
"""Texts of what other nodes have committed that are handed on together."""
_HEARTBEAT_SECONDS = 5
"""A connection that listens is tried when it was silent for so long."""
_RETRY_SECONDS = (0.2, 5.0)
"""Between two attempts to listen, at first and at most."""


def watch(
    connect: Callable[[], PostgresConnection],
    on_growth: Callable[[int | None], None],
    on_announcement: Callable[[str], None],
    on_told: Callable[[Sequence[str]], None] | None,
    hearing: NotificationReader | None,
) -> Callable[[], None]:
    """`Database.watch`, on connections of `connect`."""
    stopping = threading.Event()
    stop, ring = socket.socketpair()
    is_away = False
    first, longest = _RETRY_SECONDS
    pause = first

    def notified(payloads: Sequence[str]) -> None:
        for are_told, some in groupby(payloads, key=lambda one: one.startswith(broadcast.PREFIX)):
            if not are_told:
                for payload in some:
                    heard(payload)
            elif on_told is None:
                on_growth(None)
            else:
                while texts := list(islice(some, _TOLD_AT_ONCE)):
                    on_told(texts)

    def heard(payload: str) -> None:
        nonlocal is_away, pause
        if payload.isdigit():
            on_growth(int(payload))
        elif payload:
            on_announcement(payload)
        else:
            if is_away:
                logger.info("notifications of PostgreSQL are heard again")
            is_away = False
            pause = first
            on_growth(None)

    def listen() -> None:
        nonlocal is_away, pause
        while not stopping.is_set():
            try:
                with contextlib.closing(connect()) as connection:
                    _listen(connection, _channel(connection), notified, stop, hearing)
            except Exception as error:  # Whatever it is, it is tried again.
                if not is_away:
                    is_away = True
                    logger.warning(
                        "notifications of PostgreSQL are not heard",
                        extra={"fields": {"reason": error}},
                    )
                stopping.wait(pause)
                pause = min(pause * 2, longest)

    thread = threading.Thread(target=listen, name="postgres-listen", daemon=True)
    thread.start()

    def end() -> None:
        stopping.set()
        ring.close()  # Which the other end can read.
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
    """Call `on_payloads` with the notifications on the channel, those together that have come
    together, until there is something to read from `stop`; at first with an empty one, for
    those that came before this connection listened. With a `hearing`, the calls that follow
    come on its loop: a thread's turn for each costs more than what is done with it."""
    connection.run(f"LISTEN {pgsql.Identifier(channel).as_string()}")
    on_payloads([""])

    def notified(notification: psycopg.Notify) -> None:
        # While this thread asks something.
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
        connection.run("SELECT 1")  # Whether anybody is there.


def _until_silent(
    connection: PostgresConnection,
    on_payloads: Callable[[Sequence[str]], None],
    stop: socket.socket,
) -> bool:
    """Until nothing came for `_HEARTBEAT_SECONDS`. Whether it is to end."""
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
    """The same, on the loop; this thread waits meanwhile."""
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
            # Not before that may the connection be used here, or closed.
            _on_loop(hearing.loop, hearing.detach)
    return False


def _take_notifications(
    connection: PostgresConnection, on_payloads: Callable[[Sequence[str]], None]
) -> None:
    """Call it with those that have come, if there are any. Does not block."""
    raw = connection.driver.pgconn
    payloads: list[str] = []
    try:
        raw.consume_input()
        while notification := raw.notifies():
            payloads.append(notification.extra.decode())
        while has_ended(raw.socket):
            raw.consume_input()  # Raises once nothing is left.
    except psycopg.Error as error:
        connection.raise_ours(error)
        raise
    if payloads:
        on_payloads(payloads)


def _channel(connection: PostgresConnection) -> str:
    installation.put_once(connection, installation.CHANNEL, secrets.token_hex(16))
    ((name,),) = connection.query(
        f"SELECT {CHANNEL} FROM installation WHERE key = ?", (installation.CHANNEL,)
    )
    return str(name)


def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
    """Call it on the loop, and wait until that is done. Nothing where the loop is closed."""
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
