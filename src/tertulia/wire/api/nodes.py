"""The nodes that serve the organization."""

from typing import Annotated

from msgspec import Struct, convert, field

from tertulia.domain import permissions
from tertulia.store import backups, nodes
from tertulia.wire.http.parameters import Doc
from tertulia.wire.http.routing import ApiResponse, Call


class SlowRequestObject(Struct, kw_only=True):
    """A slow request."""

    at: Annotated[int, Doc("UNIX seconds by the node's clock.")]
    method: str
    route: Annotated[str, Doc("The path's pattern.")]
    user_id: Annotated[int | None, Doc("Null for requests without an account.")]
    status: int
    ms: Annotated[int, Doc("Time until the response began.")] = field(name="milliseconds")
    database_ms: Annotated[
        int, Doc("The part of `ms` spent waiting for the database, at most.")
    ] = field(name="database_milliseconds")
    loop_ms: Annotated[
        int, Doc("How far the node's event loop lagged behind during the request.")
    ] = field(name="loop_milliseconds")


class NodeObject(Struct, kw_only=True):
    """A process that serves the organization. Times are in UNIX seconds by the database's clock."""

    name: str
    state: Annotated[
        str,
        Doc(
            "`starting`, `serving`, `draining` (it's shutting down), `stale` (it can't tell"
            " whether it's up to date, and refuses requests), or `gone` (it hasn't reported for a"
            " while)."
        ),
    ]
    version: str
    lag_entries: Annotated[int, Doc("How many changes the node was behind at its last report.")]
    lag_seconds: Annotated[float, Doc("How long the node had been behind.")]
    waiting_polls: Annotated[int, Doc("Clients that were waiting for events.")]
    queues: Annotated[int, Doc("Event queues that the node knew.")]
    started_at: int
    seen_at: int
    asked_to_leave: bool
    slow_requests: Annotated[
        list[SlowRequestObject],
        Doc("The latest requests that took longer than the server's slow_request_ms."),
    ]


class BackupsObject(Struct, kw_only=True):
    """The server's daily backups."""

    last_at: Annotated[
        int | None, Doc("When the last successful backup was made, in UNIX seconds.")
    ]
    is_old: Annotated[bool, Doc("Whether a backup was missed, or none exists.")]


class Nodes(ApiResponse, kw_only=True):
    """The nodes, by name. Stopped nodes are listed for a day."""

    nodes: list[NodeObject]
    backups: Annotated[BackupsObject | None, Doc("Null if the server doesn't make backups itself.")]
    external_url: Annotated[str, Doc("The server's public URL; empty if it isn't configured.")]


async def get_nodes(call: Call) -> Nodes:
    """Get the state of the nodes that serve the organization, a few seconds old at most. Requires
    an owner."""
    permissions.require_owner(call.state, call.user)
    return Nodes(
        backups=await _backups(call),
        external_url=call.node.config.external_url,
        nodes=[
            NodeObject(
                name=node.name,
                state=node.state,
                version=node.entry.version,
                lag_entries=node.figures.lag_entries,
                lag_seconds=node.figures.lag_seconds,
                waiting_polls=node.figures.waiting_polls,
                queues=node.figures.queues,
                started_at=int(node.started_at),
                seen_at=int(node.seen_at),
                asked_to_leave=node.wanted == nodes.DRAIN,
                slow_requests=convert(
                    node.figures.slow[::-1], list[SlowRequestObject], from_attributes=True
                ),
            )
            for node in await call.node.store.read(nodes.list_nodes)
        ],
    )


async def _backups(call: Call) -> BackupsObject | None:
    if not call.node.config.backup_to:
        return None
    last = await call.node.store.read(backups.last_backup)
    at = last[0] if last else None
    return BackupsObject(
        last_at=None if at is None else int(at), is_old=backups.is_old(at, call.now)
    )
