"""What a node limits."""

from tertulia.delivery.announcements import Announcements
from tertulia.log.log import Log
from tertulia.service.config import Config
from tertulia.service.vault import Vault
from tertulia.wire.http.attempt_limits import SignInLimits
from tertulia.wire.http.rate_limits import RequestLimits
from tertulia.wire.http.shared_limits import Limiters


class Limits:
    """The limits of a node, which it shares with the others where there may be others."""

    def __init__(
        self, config: Config, log: Log, announcements: Announcements, vault: Vault
    ) -> None:
        self.limiters = Limiters(
            log.elapsed, announcements if log.store.is_shared else None, vault.mark
        )
        self.requests = RequestLimits(config, log.clock, self.limiters)
        self.sign_in = SignInLimits(self.limiters)
