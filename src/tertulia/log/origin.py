"""The origin of commands, for the audit log."""

from contextvars import ContextVar
from typing import Final, Protocol

from tertulia.model.audit_log import Origin


class CommandOrigin(Protocol):
    """The origin of a task's commands."""

    @property
    def is_over(self) -> bool:
        """Whether the request that began the task has ended, so that further commands are the
        server's."""

    def origin(self) -> Origin | None:
        """Return the origin; None for the server itself. Only audited changes call it."""


class ServerOrigin:
    """The origin of commands that the server submits by itself."""

    is_over = True

    def origin(self) -> Origin | None:
        return None


FROM_SERVER: Final = ServerOrigin()
current_origin: Final[ContextVar[CommandOrigin]] = ContextVar("origin", default=FROM_SERVER)
"""The origin of the current task's commands, set by HTTP requests and by the command line."""


def command_origin() -> CommandOrigin:
    """Return the origin of a command that the current task submits."""
    command_origin = current_origin.get()
    return FROM_SERVER if command_origin.is_over else command_origin
