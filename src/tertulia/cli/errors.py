"""Errors of commands: a sentence on standard error, and an exit code."""

import logging
from typing import Any

import typer
from typer.core import TyperGroup

from tertulia.app import logs
from tertulia.app.config import ConfigError
from tertulia.app.founding import NoOrganization
from tertulia.app.serving.listening import CannotListen
from tertulia.model.errors import Refused, Unavailable
from tertulia.service.credentials import VaultError
from tertulia.store.database import DatabaseError

FAILED = 1
"""The exit code of a command that failed."""
MISUSED = 2
"""The exit code of a command with invalid arguments. The sentence says how to correct them."""


class UsageError(Exception):
    """The command has invalid arguments. `str(error)` says how to correct them."""


class CommandFailed(Exception):
    """The command failed. `str(error)` is the reason."""


def sentence_for(error: BaseException) -> tuple[str, int] | None:
    """Return a sentence and an exit code for an error, or None if it's a bug."""
    import apsw  # Imported here because a server needs only one of them.
    import psycopg

    match error:
        case UsageError() | ConfigError() | NoOrganization():
            return str(error), MISUSED
        case (
            CommandFailed()
            | CannotListen()
            | DatabaseError()
            | VaultError()
            | Refused()
            | Unavailable()
        ):
            return str(error), FAILED
        case apsw.Error() | psycopg.Error():
            return f"Database error: {str(error).strip()}", FAILED
        case OSError(strerror=str(reason), filename=name) if name is not None:
            return f"{name}: {reason}.", FAILED
        case BrokenPipeError():
            return None  # The reader of the output is gone.
        case OSError(
            strerror=str(reason)
        ):  # The error comes from an open file, for example on a full disk.
            return f"{reason}.", FAILED
        case OSError() if str(error):
            return str(error), FAILED
        case _:
            return None


class Commands(TyperGroup):
    """The group of all commands. It reports errors in one sentence, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            result = sentence_for(error)
            if result is None:
                raise
            sentence, code = result
            if logs.are_json():
                logging.getLogger("tertulia").error("%s", sentence)
            else:
                typer.echo(sentence, err=True)
            raise typer.Exit(code) from None
