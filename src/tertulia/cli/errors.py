"""Errors of commands: one sentence on standard error, and an exit code."""

import logging
from typing import Any

import typer
from typer.core import TyperGroup

from tertulia.app import logs
from tertulia.app.config import ConfigError
from tertulia.app.founding import NoOrganization
from tertulia.app.serving.listening import CannotListen
from tertulia.model.errors import Refused, Unavailable
from tertulia.service.vault import VaultError
from tertulia.store.database import DatabaseError

FAILED = 1
"""It could not be done."""
MISUSED = 2
"""It was asked for in a way that cannot work; the sentence says how to ask."""


class UsageError(Exception):
    """The command cannot work like this. `str(error)` says what to do instead."""


class Failed(Exception):
    """The command could not do it. `str(error)` says why."""


def sentence_for(error: BaseException) -> tuple[str, int] | None:
    """The sentence and the exit code for an error; None for a mistake of ours."""
    import apsw  # Only where something went wrong: a server has one of the two.
    import psycopg

    match error:
        case UsageError() | ConfigError() | NoOrganization():
            return str(error), MISUSED
        case Failed() | CannotListen() | DatabaseError() | VaultError() | Refused() | Unavailable():
            return str(error), FAILED
        case apsw.Error() | psycopg.Error():
            return f"Database error: {str(error).strip()}", FAILED
        case OSError(strerror=str(reason), filename=name) if name is not None:
            return f"{name}: {reason}.", FAILED
        case BrokenPipeError():
            return None  # Whoever read what is printed has gone: nobody is to be told.
        case OSError(strerror=str(reason)):  # Of what is open: a disk that is full, say.
            return f"{reason}.", FAILED
        case OSError() if str(error):
            return str(error), FAILED
        case _:
            return None


class Commands(TyperGroup):
    """All commands: what one raises is reported in one sentence, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            found = sentence_for(error)
            if found is None:
                raise
            sentence, code = found
            if logs.are_json():
                logging.getLogger("tertulia").error("%s", sentence)
            else:
                typer.echo(sentence, err=True)
            raise typer.Exit(code) from None
