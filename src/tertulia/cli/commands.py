"""Commands about what is in the organization: each is a function of a caller and of what was typed,
and returns what it prints. Where the database is, `--json` and running it are the same for all."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import typer
from msgspec import Struct

from tertulia.app.acting import opened_caller
from tertulia.app.config import load
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import Config

Act = Callable[..., Awaitable["Printed"]]


class Printed(Struct, frozen=True):
    """What a command prints: an object as JSON, or lines of text."""

    answer: Struct | dict[str, Any]
    lines: Sequence[str]


class Done(Struct, frozen=True):
    """What is printed of something that was done."""

    done: str
    """A sentence."""


def done(sentence: str) -> Printed:
    """The sentence, as what is printed."""
    return Printed(Done(sentence), [sentence])


def show(printed: Printed, *, as_json: bool, err: bool = False) -> None:
    """Print it to standard output; with `err` to standard error."""
    if as_json:
        typer.echo(msgspec.json.encode(printed.answer).decode(), err=err)
        return
    for line in printed.lines:
        typer.echo(line, err=err)


def group(name: str, about: str) -> typer.Typer:
    """A group of commands about one noun."""
    return typer.Typer(name=name, help=about, no_args_is_help=True, rich_markup_mode="markdown")


def command(app: typer.Typer, name: str, example: str) -> Callable[[Act], Act]:
    """Add a command to the group. `example` is how it may be typed, without `tertulia`.

    The function's first parameter is a caller, an owner; the others are declared as Typer has them,
    and the options of the place and `--json` come after them.
    """

    def add(act: Act) -> Act:
        app.command(name, epilog=f"Example: `tertulia {example}`")(runnable(act))
        return act

    return add


def _place(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> tuple[Config, bool]:
    return load({"data_dir": data_dir, "database_url": database_url}, file=config), as_json


def runnable(act: Act) -> Callable[..., None]:
    """The function as Typer takes it, with the options of the place and `--json`."""
    own = list(inspect.signature(act).parameters.values())[1:]
    common = inspect.signature(_place).parameters

    def run(**given: Any) -> None:
        config, as_json = _place(**{name: given.pop(name) for name in common})
        show(asyncio.run(_carried_out(config, act, given)), as_json=as_json)

    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in (*own, *common.values())]
    run.__name__, run.__doc__ = act.__name__, act.__doc__
    # By which Typer knows the options; functions do not say that they may have one.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


async def _carried_out(config: Config, act: Act, given: dict[str, Any]) -> Printed:
    async with opened_caller(config, lambda line: typer.echo(line, err=True)) as caller:
        return await act(caller, **given)
