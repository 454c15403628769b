"""The data that an import's changes are made from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from tertulia.imports.identifiers import Identifiers
from tertulia.imports.records import SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.values import ValueChecks
from tertulia.model.users import Credential
from tertulia.state.state import State


class Secrets(Protocol):
    """Makes secrets and credentials of accounts with the installation's secret."""

    def credential(self, user_id: int, *, is_bot: bool) -> Credential:
        """Return a credential without a password and with a new API key. It accepts the passwords
        and keys of the previous server."""

    def sealed(self, text: str) -> str:
        """Return the text, encrypted."""

    def nonce(self) -> str:
        """Return a random text for an invitation."""


@dataclass
class ImportContext:
    """The data shared by everything that makes changes of one import."""

    current_state: Callable[[], State]
    """Returns the organization's state. Committed changes are folded into it."""
    source: SourceOrganization
    """Empty while messages are written, which don't need it."""
    ids: Identifiers
    secrets: Secrets
    report: ImportReport
    now: int
    """UNIX seconds."""
    is_new: bool
    """Whether the import creates the organization. If it doesn't, the organization keeps its
    settings."""

    @property
    def state(self) -> State:
        """The organization's state. Don't keep it over commits, because it's another object after
        the log has reloaded it."""
        return self.current_state()

    @cached_property
    def checks(self) -> ValueChecks:
        return ValueChecks(self.current_state, self.ids, self.report, self.now)
