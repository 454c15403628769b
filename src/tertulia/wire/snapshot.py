"""What POST /register answers besides the queue: the state that a client mirrors, by kind.

Each section belongs to a fetch type and is a function of a scene; the register race is over before
any of them runs, because the scene's state is exactly that of the queue's first entry.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tertulia.model.queues import Registration
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire import versions
from tertulia.wire.call import Node


@dataclass(frozen=True)
class Scene:
    """What a section looks at."""

    state: State
    node: Node
    viewer: User | None
    """None for a spectator."""
    registration: Registration
    presence_days: int
    url: str
    """The organization's address."""
    now: float


Section = Callable[[Scene], dict[str, Any]]

READS: Final = frozenset({"update_message_flags", "starred_messages"})
"""Fetch types whose sections need what the viewer has read."""


def always(scene: Scene) -> dict[str, Any]:
    """What every answer has."""
    return {
        "zulip_version": versions.SERVICE_VERSION,
        "zulip_feature_level": versions.FEATURE_LEVEL,
        "zulip_merge_base": versions.MERGE_BASE,
        "service_feature_level": versions.FEATURE_LEVEL,
    }


def messages(scene: Scene) -> dict[str, Any]:
    """The newest message."""
    return {"max_message_id": scene.state.last_message_id or -1}


SECTIONS: Final[dict[str, Section]] = {"message": messages}


def taken(
    scene: Scene, fetch: frozenset[str] | None, *, event_types: list[str] | None
) -> dict[str, Any]:
    """The sections that were asked for (None: all)."""
    data = always(scene)
    for name, section in SECTIONS.items():
        if fetch is None or name in fetch:
            data.update(section(scene))
    return data
