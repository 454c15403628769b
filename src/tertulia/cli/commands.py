"""The framework for commands, which all find the database, take `--json`, and run in the same way.

A command is a function whose first parameter is the object it works on: the server's settings
(`configured`), or the organization on behalf of an owner (`command`). Its other parameters are its
arguments and options. It returns its output.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import msgspec
import typer
from msgspec import Struct

from tertulia.app.acting import opened_caller
from tertulia.app.composition import opened_organization
from tertulia.app.config import ignored_file, load
from tertulia.cli.errors import UsageError
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.cli.tables import cell, table
from tertulia.log.log import Log
from tertulia.service.config import Config
from tertulia.service.credentials import Vault

Act = Callable[..., Awaitable["Printed"]]
Column = str | tuple[str, Callable[[Any], str]]
"""A field of a row, and a function that formats its value (default: `cell`)."""
Row = Mapping[str, Any]


class Printed(Struct, frozen=True):
    """A command's output: an object as JSON, or lines of text."""

    answer: Struct | Mapping[str, Any]
    lines: Sequence[str]


def done(sentence: str) -> Printed:
    """Return a sentence about what was done."""
    return Printed({"done": sentence}, [sentence])


def listing(name: str, columns: Mapping[str, Column], rows: Sequence[Row]) -> Printed:
    """Return a table with these headings; in JSON, the whole rows under `name`."""
    return Printed({name: rows}, table(tuple(columns), [cells_of(row, columns) for row in rows]))


def cells_of(row: Row, columns: Mapping[str, Column]) -> list[str]:
    """Return a row's values as text."""
    fields = (
        column if isinstance(column, tuple) else (column, cell) for column in columns.values()
    )
    return [write(row[field]) for field, write in fields]


def show(printed: Printed, *, as_json: bool, err: bool = False) -> None:
    """Print to standard output, or with `err` to standard error."""
    if as_json:
        typer.echo(msgspec.json.encode(printed.answer).decode(), err=err)
        return
    for line in printed.lines:
        typer.echo(line, err=err)


def report(line: str) -> None:
    """Print progress, such as of a migration, to standard error."""
    typer.echo(line, err=True)


def opened(config: Config) -> AbstractAsyncContextManager[tuple[Log, Vault]]:
    """Open the log and the vault of an existing organization, for commands that don't act for
    anyone."""
    return opened_organization(config, report)


def group(name: str, about: str) -> typer.Typer:
    """Return a group of commands about one noun."""
    return typer.Typer(name=name, help=about, no_args_is_help=True, rich_markup_mode="markdown")


def command(app: typer.Typer, name: str, example: str) -> Callable[[Act], Act]:
    """Return a decorator that adds a function of a caller, who is an owner, to a group. `example`
    is a command line without `tertulia`."""

    def add(act: Act) -> Act:
        app.command(name, epilog=f"Example: `tertulia {example}`")(runnable(act))
        return act

    return add


def runnable(act: Act) -> Callable[..., None]:
    """Convert a function of a caller to one that Typer can run."""

    async def carry_out(config: Config, **given: Any) -> Printed:
        async with opened_caller(config, report) as caller:
            return await act(caller, **given)

    return _command(act, carry_out)


def configured(act: Callable[..., Any]) -> Callable[..., None]:
    """Convert a function of the server's settings to one that Typer can run.

    It can be asynchronous, unless it asks questions, because it couldn't be interrupted then. If it
    has a parameter `as_json`, it prints by itself. A parameter `settings_file` gets the path of
    `--config`.
    """
    return _command(act, act)


def add_default_command(
    app: typer.Typer,
    run: Callable[..., None],
    example: str,
    *,
    list_only: Callable[..., None] | None = None,
) -> None:
    """Add the command `list`, which the group also runs without a command. `list_only` is `list` if
    `run` has options that aren't about listing."""

    def run_group(context: typer.Context, **given: Any) -> None:
        if context.invoked_subcommand is None:
            run(**given)
        elif any(given.values()):
            raise UsageError(f"Put options after `{context.invoked_subcommand}`.")

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    _declare(run_group, [context, *inspect.signature(run).parameters.values()])
    run_group.__doc__ = inspect.cleandoc(run.__doc__ or "").partition("\n\n")[0]
    app.callback(epilog=example, invoke_without_command=True)(run_group)
    app.command("list", epilog=example)(list_only or run)


def _place(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> tuple[Config, bool]:
    return settings_from({"data_dir": data_dir, "database_url": database_url}, config), as_json


def settings_from(flags: Mapping[str, Any], file: Path | None) -> Config:
    """Return the server's settings, and warn on standard error if a settings file is ignored. Raise
    ConfigError."""
    config = load(flags, file=file)
    if ignored := ignored_file(config, file):
        report(f"Reading settings from {file}. {ignored} is ignored, because --config is given.")
    return config


_FILE: Final = "settings_file"


def _command(act: Callable[..., Any], carry_out: Callable[..., Any]) -> Callable[..., None]:
    parameters = inspect.signature(act).parameters
    common = inspect.signature(_place).parameters

    def run(**given: Any) -> None:
        place = {name: given.pop(name) for name in common}
        config, as_json = _place(**place)
        passed = {"as_json": as_json, _FILE: place["config"]}
        given |= {name: value for name, value in passed.items() if name in parameters}
        printed = carry_out(config, **given)
        if inspect.iscoroutine(printed):
            printed = asyncio.run(printed)
        if printed is not None:
            show(printed, as_json=as_json)

    typed = [
        parameter
        for parameter in list(parameters.values())[1:]
        if parameter.name not in {*common, _FILE}
    ]
    _declare(
        run,
        [
            parameter.replace(kind=parameter.KEYWORD_ONLY)
            for parameter in (*typed, *common.values())
        ],
    )
    run.__name__, run.__doc__ = act.__name__, act.__doc__
    return run


def _declare(run: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Declare the parameters of a function of `**given`, which Typer reads as options."""
    # `inspect` documents `__signature__`, but the type of functions doesn't have it.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
