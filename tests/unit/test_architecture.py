"""The structure of the packages, and what the docs say about it, compared with the code."""

import ast
import graphlib
import io
import re
import tokenize
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tertulia
from tertulia.model import changes
from tertulia.state.audit_log import AUDITED, NOT_AUDITED
from tertulia.state.folds import FOLDS
from tertulia.wire.api.projections import PROJECTIONS

ROOT = Path(tertulia.__file__).parent
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
ARCHITECTURE = ROOT.parents[1] / "docs" / "architecture.md"
BELOW_WIRE = {
    *("model", "state", "domain", "markup", "store", "log", "delivery"),
    *("service", "jobs"),
}


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table below this heading of the architecture page."""
    section = ARCHITECTURE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


PACKAGES = {
    name.strip("`"): set(filter(None, imported.split(", ")))
    for name, _, imported in rows_of("The packages")
}
"""The packages of ours that each package imports."""

WIRE_ORDER = ("http", "api", "mcp", "scim", "files", "pages", "protocol", "metrics", "mail")
"""The parts of `wire`: each may import earlier ones, and `protocol` only `http`."""

WIRE_WORDS = {"stream", "private", "subject", "op"}
ALLOWED = {
    ("domain", "subject"): "an identity provider's ID of a person",
    ("jobs", "subject"): "an identity provider's ID of a person",
    ("model", "subject"): "an identity provider's ID of a person",
    ("service", "subject"): "an identity provider's ID of a person",
    ("state", "by_subject"): "an identity provider's ID of a person",
    ("domain", "by_subject"): "an identity provider's ID of a person",
    ("domain", "MAX_SUBJECT"): "an identity provider's ID of a person",
    ("state", "subject"): "an identity provider's ID of a person",
    ("store", "op"): "an SQL operator would be one",
    ("store", "stream"): "how obstore calls reading an object bit by bit",
}


@cache
def parsed(path: Path) -> ast.Module:
    """The file's syntax tree. Don't change it."""
    return ast.parse((ROOT / path).read_text())


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and module of each import of our own, except for those used only for type
    checking."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("tertulia"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            if node.module == "tertulia":
                yield from ((node.lineno, f"tertulia.{alias.name}") for alias in node.names)
            elif node.module and node.module.startswith("tertulia."):
                yield node.lineno, node.module


def module_of(path: Path) -> str:
    """The dotted name of the file's module."""
    parts = path.with_suffix("").parts
    return ".".join(("tertulia", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {module_of(path): path for path in FILES}


def is_for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


@cache
def imported_modules(path: Path) -> frozenset[str]:
    """Every module of our own that the file imports at load time or later, including `from package
    import module`, except for those used only for type checking."""
    found: set[str] = set()
    body = [one for one in parsed(path).body if not is_for_type_checkers(one)]
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(whole & MODULES.keys() or {node.module})
    return frozenset(found & MODULES.keys())


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "tertulia"


@pytest.mark.parametrize("package", sorted({p.parts[0] for p in FILES if len(p.parts) > 1}))
def test_packages_import_what_the_architecture_allows(package: str) -> None:
    found = {
        package_of(module)
        for path in FILES
        if path.parts[0] == package
        for module in imported_modules(path)
    }
    assert found - {package, "tertulia"} == PACKAGES[package]


def test_the_organization_can_be_used_without_http() -> None:
    """Email, jobs, imports, and the command line depend on that."""
    http = {"starlette", "uvicorn", "tertulia.wire", "tertulia.app"}
    imported = {
        (str(path), name)
        for path in FILES
        if path.parts[0] in {"service", "jobs"}
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names]
        )
    }
    assert not [
        (path, name) for path, name in imported for one in http if f"{name}.".startswith(f"{one}.")
    ]


def test_packages_import_downwards() -> None:
    graphlib.TopologicalSorter(PACKAGES).prepare()  # Raises CycleError, which names them.


@pytest.mark.parametrize(("task", "places"), rows_of("Where to change what"))
def test_paths_for_newcomers_exist(task: str, places: str) -> None:
    named = [path for path in places.split("`")[1::2] if "/" in path]
    assert named
    assert [path for path in named if not (ARCHITECTURE.parents[1] / path).exists()] == []


def test_modules_named_in_the_architecture_exist() -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", ARCHITECTURE.read_text()))
    assert len(named) > 20
    bases = (ROOT, ARCHITECTURE.parents[1])
    assert [
        path for path in sorted(named) if not any((base / path).exists() for base in bases)
    ] == []


def test_paths_in_the_glossary_exist() -> None:
    lines = (ARCHITECTURE.parent / "glossary.md").read_text().splitlines()
    places = [row.rpartition("| `")[2].rstrip("` |") for row in lines if row.endswith("` |")]
    assert len(places) > 20
    assert [place for place in places if not (ROOT / place).exists()] == []


@pytest.mark.parametrize("own", WIRE_ORDER)
def test_parts_of_wire_import_downwards(own: str) -> None:
    below = {"http"} if own == "protocol" else {*WIRE_ORDER[: WIRE_ORDER.index(own)]}
    wrong = [
        f"{path}:{line} imports {module}"
        for path in FILES
        if path.parts[:2] == ("wire", own)
        for line, module in imports(path)
        if package_of(module) == "wire"
        and module.split(".")[2:3] not in ([own], *([b] for b in below))
    ]
    assert not wrong


def test_every_module_of_wire_belongs_to_a_part() -> None:
    """Except for the application, which combines all of them."""
    parts = {path.parts[1] for path in FILES if path.parts[0] == "wire" and len(path.parts) > 2}
    assert parts == set(WIRE_ORDER)


def test_no_modules_import_each_other_in_a_circle() -> None:
    sorter = graphlib.TopologicalSorter({m: imported_modules(p) - {m} for m, p in MODULES.items()})
    sorter.prepare()  # Raises CycleError, which names the modules.


def test_the_top_level_has_only_packages_and_known_modules() -> None:
    assert {path.name for path in FILES if len(path.parts) == 1} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("package", sorted(BELOW_WIRE))
def test_zulips_words_stay_in_wire(package: str) -> None:
    wrong = [
        f"{path}:{token.start[0]} says {token.string}"
        for path in FILES
        if path.parts[0] == package
        for token in tokenize.generate_tokens(io.StringIO((ROOT / path).read_text()).readline)
        if token.type == tokenize.NAME
        and (path.parts[0], token.string) not in ALLOWED
        and any(word in WIRE_WORDS for word in token.string.lower().strip("_").split("_"))
        and "is_private" not in token.string
        and token.string not in PRIVATE_IN_THE_PLAIN_SENSE
    ]
    assert not wrong


PRIVATE_IN_THE_PLAIN_SENSE = {"can_create_private_channel_group", "allow_private_data_export"}
"""Private channels and data: the domain's term, not the wire's word for direct messages."""


def test_the_composition_root_is_short() -> None:
    assert len((ROOT / "app/composition.py").read_text().splitlines()) < 160


def test_public_classes_have_names_of_their_own() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


EVERY_CHANGE = typing.get_args(changes.AnyChange)


def test_every_change_can_be_logged() -> None:
    """A module with changes that `model.changes` doesn't import isn't among those of the log."""
    defined = {
        node.name
        for path in FILES
        if path.parts[0] == "model"
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and "Change" in [ast.unparse(base) for base in node.bases]
    }
    assert defined == {change.__name__ for change in EVERY_CHANGE}


def test_every_change_has_a_fold() -> None:
    assert [change for change in EVERY_CHANGE if change not in FOLDS] == []


def test_every_change_is_audited_or_deliberately_not() -> None:
    assert AUDITED.keys() & NOT_AUDITED == set()
    assert [one for one in EVERY_CHANGE if one not in AUDITED and one not in NOT_AUDITED] == []


def test_every_change_has_one_projection() -> None:
    projected = [projection.of for projection in PROJECTIONS]
    assert [change for change in EVERY_CHANGE if projected.count(change) != 1] == []


SHOWS_ROLES = {
    Path("cli/serve.py"),
    Path("demo/__init__.py"),
    Path("demo/steps.py"),
    Path("domain/accounts/signup.py"),
    Path("domain/channel_access.py"),
    Path("cli/channels.py"),
    Path("cli/users.py"),
    Path("domain/permissions.py"),
    Path("domain/accounts/deactivation.py"),
    Path("domain/accounts/users.py"),
    Path("domain/accounts/full_members.py"),
    Path("domain/accounts/identities.py"),
    Path("exports/zulip_people.py"),
    Path("model/users.py"),
    Path("state/audit_log.py"),
    Path("state/groups.py"),
    Path("state/users.py"),
    Path("wire/api/users/objects.py"),
    Path("wire/pages/login.py"),
    Path("wire/api/users/roles.py"),
    Path("wire/api/server.py"),
    Path("wire/api/users/endpoints.py"),
    Path("wire/api/users/sections.py"),
}
"""Places that need the assigned role rather than permissions."""
WHO_ACTS = {
    "user",
    "viewer",
    "actor",
    "context.actor",
    "call.user",
    "viewer.user",
    "context.viewer",
}


def test_code_asks_the_permissions_what_a_role_allows() -> None:
    """A bot's role differs from the rights that its owner leaves to it."""
    roles = {"is_owner", "is_administrator", "is_moderator", "is_guest"}
    wrong = [
        f"{path}:{node.lineno} looks at {node.attr}"
        for path in FILES
        if path not in SHOWS_ROLES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and (node.attr in roles or (node.attr == "role" and ast.unparse(node.value) in WHO_ACTS))
        and ast.unparse(node.value) != "permissions"
    ]
    assert not wrong


DOCUMENTS = sorted(
    [
        *(ROOT / path for path in FILES),
        *ARCHITECTURE.parent.rglob("*.md"),
        *(ARCHITECTURE.parents[1] / name for name in ("CONTRIBUTING.md", "README.md")),
    ]
)
MODULE = re.compile(rf"`(?:tertulia\.)?((?:{'|'.join(PACKAGES)})(?:\.\w+)+)")
FILE = re.compile(rf"`(?:src/tertulia/)?((?:{'|'.join(PACKAGES)})/[\w/]+\.py)`")


def leads_somewhere(dotted: str) -> bool:
    """Whether this module, or this name in a module, exists."""
    place, names = ROOT, dotted.split(".")
    while names and ((place / names[0]).is_dir() or (place / f"{names[0]}.py").exists()):
        place /= names.pop(0)
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return not names or re.search(rf"\b{names[0]}\b", source.read_text()) is not None


def test_references_in_docs_exist() -> None:
    wrong = []
    for path in DOCUMENTS:
        text = path.read_text()
        named = [name for name in MODULE.findall(text) if not leads_somewhere(name)]
        named += [name for name in FILE.findall(text) if not (ROOT / name).exists()]
        wrong += [f"{path.name}: {name}" for name in named]
    assert not wrong
