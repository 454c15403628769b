"""`tertulia playgrounds`: where on the web code can be tried."""

from operator import attrgetter

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.nouns import Noun, Verbs
from tertulia.model.organization import Playground
from tertulia.state.organization import State
from tertulia.wire.api.resources.administration import (
    AddPlayground,
    OnePlayground,
    add_playground,
    remove_playground,
)

app = group(
    "playgrounds",
    "Manage code playgrounds, where people can run code from messages.",
)

_NAMES = {"name": "name", "language": "pygments_language", "url_template": "url_template"}


def _shown(_: State, one: Playground) -> dict[str, Shown]:
    return {"name": one.name, "language": one.language, "url_template": one.url_template}


_verbs = Verbs(
    app,
    Noun(
        several="playgrounds",
        one="playground",
        records=lambda state: sorted(state.playgrounds, key=attrgetter("id")),
        shown=_shown,
        columns=tuple(_NAMES),
        names=_NAMES,
        takes={"language": "a language, as named by Pygments"},
    ),
)
_verbs.list()
_verbs.make(
    "add",
    AddPlayground,
    add_playground,
    attrgetter("id"),
    "name=Rust language=Rust 'url_template=https://play.rust-lang.org/?code={code}'",
)
_verbs.end("remove", OnePlayground, remove_playground, "Remove a playground.", "Rust")
