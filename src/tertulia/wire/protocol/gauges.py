"""What an HTTP server knows of itself, as metrics have it."""

from dataclasses import dataclass

from tertulia.wire.protocol.connections import Connections
from tertulia.wire.protocol.load import Load


@dataclass(frozen=True)
class Gauges:
    """See `tertulia.wire.http.node.ServerGauges`."""

    load: Load
    of_connections: Connections

    @property
    def connections(self) -> int:
        return self.of_connections.open

    @property
    def in_progress(self) -> int:
        return self.load.in_progress

    @property
    def refused(self) -> int:
        return self.load.all_refused
