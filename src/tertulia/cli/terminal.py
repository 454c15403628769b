"""Questions, passwords, progress bars, and interrupts on a terminal."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import typer

from tertulia.app.config import ConfigError
from tertulia.cli.errors import UsageError
from tertulia.model.errors import Refused
from tertulia.service.accounts import password_rules
from tertulia.service.config import Config
from tertulia.store.transfer import Progress

# Questions


def can_be_asked() -> bool:
    """Whether a person can answer questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(*lines: str) -> None:
    """Print lines between questions."""
    for line in lines:
        typer.echo(line, err=True)


def ask(
    question: str,
    check: Callable[[str], str] = str,
    *,
    default: str | None = "",
    typed: str = "",
    hidden: bool = False,
) -> str:
    """Ask until `check` accepts the answer, and return its result. Without a default, an answer
    is required. `typed` is the previous answer; it, and each rejected answer, can be edited in
    place."""
    while True:
        with _editable("" if hidden else typed):
            typed = str(
                typer.prompt(
                    question,
                    default=default,
                    show_default=bool(default),
                    hide_input=hidden,
                    err=True,
                )
            ).strip()
        try:
            return check(typed)
        except (Refused, UsageError, ConfigError) as error:
            say(f"  {error}")


@contextlib.contextmanager
def _editable(text: str) -> Iterator[None]:
    """Put the text into the input line of the next question, if the terminal supports it."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        yield
    finally:
        readline.set_startup_hook(None)


def agree(question: str, *, default: bool) -> bool:
    """Ask a yes-or-no question."""
    return bool(typer.confirm(question, default=default, err=True))


def several(text: str) -> list[str]:
    """Return the parts of a comma-separated answer, without duplicates."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def password_from(option: str | None, config: Config, *personal: str) -> str:
    """Return a password from the option, from the terminal, or from the first line of standard
    input.

    `personal` is known about the person, and the password must not be like it. On a terminal, ask
    again until the password is good enough; otherwise, raise UsageError for a weak one.
    """
    rules = password_rules(config)
    if option is None and not sys.stdin.isatty():
        option = sys.stdin.readline().rstrip("\r\n")
        if not option:
            raise UsageError(
                "A password is required. Use --password, or pass the password on standard input."
            )
    if option is not None:
        return good_password(config, option, *personal)
    while True:
        asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        try:
            return rules.require(asked, personal)
        except Refused as refusal:
            say(str(refusal))


def good_password(config: Config, password: str, *personal: str) -> str:
    """Return the password. Raise UsageError if it's too short or too easy to guess."""
    try:
        return password_rules(config).require(password, personal)
    except Refused as refusal:
        raise UsageError(str(refusal)) from None


# Progress and interrupts


@contextlib.contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show a progress bar for each table that is reported, if standard error is a terminal."""
    # Imported here because only some commands show bars.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {}

        def report(table: str, done: int, total: int) -> None:
            if table not in tasks:
                tasks[table] = bars.add_task(table, total=total)
            bars.update(tasks[table], completed=done)

        yield report


@contextlib.contextmanager
def as_interrupts() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl+C, so that temporary files are deleted. Signals that are
    ignored or handled elsewhere don't change."""
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
    # Shells start background jobs with SIGINT ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
