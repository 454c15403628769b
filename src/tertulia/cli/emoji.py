"""`tertulia emoji`: the organization's own."""

from pathlib import Path
from typing import Annotated

import typer

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Printed, group
from tertulia.cli.nouns import Noun, Verbs
from tertulia.domain.organization import emoji
from tertulia.model.errors import Refused
from tertulia.model.reactions import CustomEmoji
from tertulia.service.caller import Caller
from tertulia.service.files.custom_emoji import MAX_MIB, add_emoji
from tertulia.state.organization import State
from tertulia.wire.api.resources.emoji import NamedEmoji, deactivate_custom_emoji

app = group("emoji", "Manage custom emoji: list, add, and remove them.")


def _records(state: State) -> list[CustomEmoji]:
    active = [one for one in state.custom_emoji if not one.deactivated]
    return sorted(active, key=lambda one: one.name)


def _shown(state: State, one: CustomEmoji) -> dict[str, Shown]:
    author = state.users.get(one.author_id)
    return {
        "name": one.name,
        "moves": bool(one.still),
        "added_by": "" if author is None else author.address,
    }


_verbs = Verbs(
    app,
    Noun(
        several="emoji",
        one="emoji",
        records=_records,
        shown=_shown,
        columns=("name", "moves", "added_by"),
        names={},
    ),
)
_verbs.list()


@_verbs.add("add", "espresso espresso.png")
async def add(
    caller: Caller,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Lowercase letters, digits, underscores, and hyphens."),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help=f"An image of up to {MAX_MIB} MiB.")],
) -> Printed:
    """Add a custom emoji. The image is cropped to a square, and can be animated."""
    caller.consider(emoji.allow, name)
    with file.open("rb") as opened:  # Of some files nobody knows how long they are.
        content = opened.read(MAX_MIB * 2**20 + 1)
    if len(content) > MAX_MIB * 2**20:
        raise Refused(f"The image is larger than the {MAX_MIB} MiB limit. Choose a smaller one.")
    await add_emoji(caller, name, content)
    return _verbs.printed(caller.state, _verbs.found(caller.state, name))


_verbs.end(
    "remove",
    NamedEmoji,
    deactivate_custom_emoji,
    "Remove a custom emoji. Existing messages and reactions keep it.",
    "espresso",
)
