"""A progress bar on terminals."""

from collections.abc import Iterator
from contextlib import contextmanager

from tertulia.store.transfer import Progress


@contextmanager
def shown() -> Iterator[Progress]:
    """What to report the progress of tables to."""
    # Only for the commands that show one: a server shows none.
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
