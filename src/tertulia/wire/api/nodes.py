"""The nodes that serve the organization."""

from typing import Annotated

from msgspec import Meta, Struct

from tertulia.domain import permissions
from tertulia.store import backups, nodes
from tertulia.store.nodes import SlowRequest
from tertulia.wire.http.parameters import NoParams
from tertulia.wire.http.routing import ApiResponse, Call


class SlowRequestObject(Struct, kw_only=True):
    """A request that took long."""

    at: Annotated[int, Meta(description="UNIX seconds of the node's clock.")]
    method: str
    route: Annotated[
        str, Meta(description="The path, with names in place of what is different in each.")
    ]
    user_id: Annotated[int | None, Meta(description="null for somebody without an account.")]
    status: int
    milliseconds: Annotated[
        int, Meta(description="Until the answer began, without waiting for the client.")
    ]
    database_milliseconds: Annotated[
        int, Meta(description="Of that, how long it waited for the database, at most.")
    ]
    loop_milliseconds: Annotated[
        int, Meta(description="How late the node did what it had to do meanwhile.")
    ]


class NodeObject(Struct, kw_only=True):
    """A process that serves the organization. Times are UNIX seconds of the database's clock."""

    name: str
    state: Annotated[
        str,
        Meta(
            description="`starting`, `serving`; `draining`: it is leaving; `stale`: it cannot see"
            " whether it is up to date, and answers nothing; `gone`: nothing was heard of it for a"
            " while."
        ),
    ]
    version: str
    lag_entries: Annotated[
        int, Meta(description="By how many changes it was behind when it was last heard of.")
    ]
    lag_seconds: Annotated[float, Meta(description="For how long it was.")]
    waiting_polls: Annotated[int, Meta(description="Clients that waited there for events.")]
    queues: Annotated[int, Meta(description="Event queues that it knew.")]
    started_at: int
    seen_at: int
    asked_to_leave: bool
    slow_requests: Annotated[
        list[SlowRequestObject],
        Meta(description="The latest that took longer than the server's slow_request_ms."),
    ]


class BackupsObject(Struct, kw_only=True):
    """The backups that the server makes by itself each day."""

    last_at: Annotated[
        int | None,
        Meta(description="When the last was made that could be restored, in UNIX seconds."),
    ]
    is_old: Annotated[bool, Meta(description="Whether one was missed, or there is none.")]


class Nodes(ApiResponse, kw_only=True):
    """The nodes, by name; those that are gone for a day."""

    nodes: list[NodeObject]
    backups: Annotated[
        BackupsObject | None, Meta(description="null where the server makes none by itself.")
    ]
    external_url: Annotated[
        str, Meta(description="The address that people use; empty where nobody has said it.")
    ]


async def get_nodes(call: Call, params: NoParams) -> Nodes:
    """The processes that serve the organization, each as it was a few seconds ago, for owners."""
    permissions.require_owner(call.state, call.user)
    found = await call.node.store.read(nodes.list_nodes)
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
                slow_requests=[_slow(one) for one in reversed(node.figures.slow)],
            )
            for node in found
        ],
    )


def _slow(one: SlowRequest) -> SlowRequestObject:
    return SlowRequestObject(
        at=one.at,
        method=one.method,
        route=one.route,
        user_id=one.user_id,
        status=one.status,
        milliseconds=one.ms,
        database_milliseconds=one.database_ms,
        loop_milliseconds=one.loop_ms,
    )


async def _backups(call: Call) -> BackupsObject | None:
    if not call.node.config.backup_to:
        return None
    last = await call.node.store.read(backups.last_backup_at)
    return BackupsObject(
        last_at=None if last is None else int(last), is_old=backups.is_old(last, call.now)
    )
