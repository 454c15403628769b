"""Ending a command in order, however it is told to end."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def as_interrupts() -> Iterator[None]:
    """Take SIGTERM, of a service manager or of the machine's end, and SIGHUP, of a terminal that
    goes, as Ctrl+C for the time of the context: what must not lie about is deleted then. Where
    they are ignored, or somebody else's, they stay so."""
    is_main = threading.current_thread() is threading.main_thread()
    taken = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if is_main and signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_: int, __: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # Begun in a shell's background.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
