"""The shape of the house, held against the code."""

import ast
import io
import tokenize
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import tertulia
from tertulia.model import changes
from tertulia.state import fold
from tertulia.wire.projections import PROJECTIONS

ROOT = Path(tertulia.__file__).parent
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
EVERYTHING = {path.parts[0].removesuffix(".py") for path in FILES} | {"tertulia"}
ON_TOP = {"cli", "app", "house", "mailing", "demo", "__main__", "__init__"}
BELOW_WIRE = {"model", "state", "domain", "markup", "store", "log", "delivery"}

MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "state": {"model"},
    "domain": {"model", "state"},
    "workers": set(),
    "markup": {"model", "state", "domain", "workers"},
    "store": {"model"},
    "log": {"model", "state", "store"},
    "delivery": {"model", "state", "log", "store"},
    "config": set(),
    "vault": {"model"},
    "links": {"model", "state", "vault"},
    "pictures": {"model", "workers"},
    "outbound": {"model", "state", "store", "log", "workers"},
    "wire": {*BELOW_WIRE, "outbound", "config", "vault", "links", "pictures"},
    "jobs": {*BELOW_WIRE, "outbound", "wire", "config", "links", "mailing"},
}
"""What each package may import of ours, besides itself. One that is not named may import all but
what is on top, and may be imported by that only."""

WIRE_WORDS = {"stream", "private", "subject", "op"}
ALLOWED = {
    ("store", "op"): "an SQL operator would be one",
}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the module of each import of ours, those for type checkers alone left out."""
    tree = ast.parse((ROOT / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("tertulia"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            if node.module == "tertulia":
                yield from ((node.lineno, f"tertulia.{alias.name}") for alias in node.names)
            elif node.module and node.module.startswith("tertulia."):
                yield node.lineno, node.module


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "tertulia"


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_run_downwards(path: Path) -> None:
    own = path.parts[0].removesuffix(".py")
    allowed = EVERYTHING if own in ON_TOP else MAY_IMPORT.get(own, EVERYTHING - ON_TOP)
    wrong = [
        f"{path}:{line} imports {module}"
        for line, module in imports(path)
        if package_of(module) not in allowed | {own, "tertulia", "__version__"}
    ]
    assert not wrong


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parts[0].removesuffix(".py") in BELOW_WIRE], ids=str
)
def test_wire_words_stay_in_wire(path: Path) -> None:
    tokens = tokenize.generate_tokens(io.StringIO((ROOT / path).read_text()).readline)
    wrong = [
        f"{path}:{token.start[0]} says {token.string}"
        for token in tokens
        if token.type == tokenize.NAME
        and (path.parts[0], token.string) not in ALLOWED
        and any(word in WIRE_WORDS for word in token.string.lower().strip("_").split("_"))
        and "is_private" not in token.string
        and token.string not in PRIVATE_IN_THE_PLAIN_SENSE
    ]
    assert not wrong


PRIVATE_IN_THE_PLAIN_SENSE = {"can_create_private_channel_group", "allow_private_data_export"}
"""Channels and data that are private: the word of the domain, not the wire's for direct."""


def test_the_composition_root_is_short() -> None:
    assert len((ROOT / "app.py").read_text().splitlines()) < 160


EVERY_CHANGE = typing.get_args(changes.AnyChange)


def test_every_change_is_one_that_the_log_can_keep() -> None:
    defined = {
        value
        for value in vars(changes).values()
        if isinstance(value, type)
        and issubclass(value, changes.Change)
        and value is not changes.Change
    }
    assert defined == set(EVERY_CHANGE)


@pytest.mark.parametrize("change", EVERY_CHANGE, ids=lambda change: change.__name__)
def test_every_change_has_a_fold(change: type[changes.Change]) -> None:
    assert change in fold.FOLDS


@pytest.mark.parametrize("change", EVERY_CHANGE, ids=lambda change: change.__name__)
def test_every_change_has_one_projection(change: type[changes.Change]) -> None:
    assert [p.of for p in PROJECTIONS].count(change) == 1


SHOWS_ROLES = {
    Path("cli/serve.py"),
    Path("demo/__init__.py"),
    Path("demo/making.py"),
    Path("domain/joining.py"),
    Path("domain/permissions.py"),
    Path("domain/users.py"),
    Path("domain/waiting.py"),
    Path("model/users.py"),
    Path("state/ages.py"),
    Path("state/organization.py"),
    Path("wire/objects/users.py"),
    Path("wire/pages_door.py"),
    Path("wire/projections/roles.py"),
    Path("wire/resources/server.py"),
    Path("wire/resources/users.py"),
    Path("wire/snapshot/people.py"),
}
"""Where the role that an account was given is meant, and not what it may do."""
WHO_ACTS = {"user", "viewer", "actor", "moment.actor", "call.user", "viewer.user", "scene.viewer"}


@pytest.mark.parametrize("path", [p for p in FILES if p not in SHOWS_ROLES], ids=str)
def test_what_a_role_allows_is_asked_of_the_permissions(path: Path) -> None:
    """A bot's role is one thing, and the rights that its owner leaves to it another."""
    roles = {"is_owner", "is_administrator", "is_moderator", "is_guest"}
    wrong = [
        f"{path}:{node.lineno} looks at {node.attr}"
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Attribute)
        and (node.attr in roles or (node.attr == "role" and ast.unparse(node.value) in WHO_ACTS))
        and ast.unparse(node.value) != "permissions"
    ]
    assert not wrong
