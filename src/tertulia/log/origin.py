"""Where commands come from, for the audit log."""

from contextvars import ContextVar
from typing import Final, Protocol

from tertulia.model.audit_log import Origin


class CommandOrigin(Protocol):
    """Where the commands of a task come from."""

    @property
    def is_over(self) -> bool:
        """Whether what began the task has ended, so that what it still does is the server's."""

    def origin(self) -> Origin | None:
        """Return the origin; None for the server itself. Only audited changes call it."""


class ServerOrigin:
    """The origin of what the server does by itself."""

    is_over = True

    def origin(self) -> Origin | None:
        return None


FROM_SERVER: Final = ServerOrigin()
current_origin: Final[ContextVar[CommandOrigin]] = ContextVar("origin", default=FROM_SERVER)
"""Set by HTTP requests and by the command line."""


def command_origin() -> CommandOrigin:
    """Return the origin of a command that the current task submits."""
    command_origin = current_origin.get()
    return FROM_SERVER if command_origin.is_over else command_origin
