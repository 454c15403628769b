"""Linkifiers and code playgrounds, which both use URL templates."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import names, permissions
from tertulia.model.changes import (
    LinkifierRemoved,
    LinkifierSet,
    LinkifiersOrdered,
    PlaygroundAdded,
    PlaygroundRemoved,
)
from tertulia.model.errors import Refused
from tertulia.model.organization import Linkifier, Playground
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_TEMPLATE: Final = 2000

_NAME: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARIABLE: Final = rf"({_NAME})(?::[1-9][0-9]{{0,3}}|\*)?"
_EXPRESSION: Final = re.compile(rf"\{{[+#./;?&]?({_VARIABLE}(?:,{_VARIABLE})*)\}}")
_LITERAL: Final = re.compile(r"(?:[^\s\x00-\x20\"%<>\\^`{|}]|%[0-9A-Fa-f]{2})*")
_RUNS_CODE: Final = ("javascript:", "vbscript:", "data:")


def url_template(text: str) -> tuple[str, frozenset[str]]:
    """Return the normalized template and the names of its variables. Raise Refused if it's invalid
    or its URL runs code."""
    template = text.strip()
    if not template or len(template) > MAX_TEMPLATE:
        raise Refused(f"A URL template must have 1 to {MAX_TEMPLATE} characters.")
    if template.lower().startswith(_RUNS_CODE) or not names.is_printable(template):
        raise Refused("This isn't a valid URL template.")
    variables: set[str] = set()
    end = 0
    for expression in _EXPRESSION.finditer(template):
        _check_literal(template[end : expression.start()])
        end = expression.end()
        variables.update(
            re.split(r"[:*]", item, maxsplit=1)[0] for item in expression[1].split(",")
        )
    _check_literal(template[end:])
    return template, frozenset(variables)


def _check_literal(text: str) -> None:
    if not _LITERAL.fullmatch(text):
        raise Refused("This isn't a valid URL template.")


MAX_PATTERN: Final = 1000
MAX_TEXT: Final = 1000
"""The most characters of an example, and of a reverse template."""
MAX_ALTERNATIVES: Final = 50
MAX_LINKIFIERS: Final = 200
MAX_CHARACTERS: Final = 100_000
"""The most characters of all patterns, templates, and examples, because every client gets them."""
MAX_PATTERN_BYTES: Final = 2 * 1024 * 1024
"""The most memory of a compiled pattern. It limits the time for compiling to 35 ms."""


class LinkifierValues(Struct, frozen=True, kw_only=True):
    """New values of a linkifier. UNSET fields don't change."""

    pattern: str | UnsetType = UNSET
    url_template: str | UnsetType = UNSET
    example_input: str | UnsetType | None = UNSET
    reverse_template: str | UnsetType | None = UNSET
    alternative_url_templates: Sequence[str] | UnsetType = UNSET


def add(context: CommandContext, given: LinkifierValues) -> Decision[int]:
    """Add a linkifier after the others and return its ID.

    Raise Refused for an invalid or taken pattern, invalid templates or variables, a reverse
    template that doesn't reproduce the example, and beyond the limits.
    """
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    if len(state.linkifiers) >= MAX_LINKIFIERS:
        raise Refused(
            f"An organization can have at most {MAX_LINKIFIERS} linkifiers. Remove one that"
            " you no longer need."
        )
    last = max((linkifier.order for linkifier in state.linkifiers), default=0)
    blank = Linkifier(id=state.linkifiers.next_id(), order=last + 1, pattern="", url_template="")
    linkifier = _checked(state, _updated_linkifier(blank, given))
    return Decision(linkifier.id, (LinkifierSet(linkifier=linkifier),))


def change(context: CommandContext, linkifier_id: int, given: LinkifierValues) -> Decision[None]:
    """Change a linkifier. Raise Refused as `add`, and if it doesn't exist."""
    permissions.require_administrator(context.state, context.actor)
    before = _existing_linkifier(context.state, linkifier_id)
    after = _checked(context.state, _updated_linkifier(before, given))
    return Decision(None, () if after == before else (LinkifierSet(linkifier=after),))


def remove(context: CommandContext, linkifier_id: int) -> Decision[None]:
    """Remove a linkifier. Raise Refused if it doesn't exist."""
    permissions.require_administrator(context.state, context.actor)
    _existing_linkifier(context.state, linkifier_id)
    return Decision(None, (LinkifierRemoved(linkifier_id=linkifier_id),))


def order(context: CommandContext, linkifier_ids: Sequence[int]) -> Decision[None]:
    """Set the order of the linkifiers. Raise Refused unless each is named exactly once."""
    permissions.require_administrator(context.state, context.actor)
    present = [linkifier.id for linkifier in context.state.linkifiers_in_order]
    if sorted(linkifier_ids) != sorted(present):
        raise Refused("The order must list every linkifier exactly once.")
    if list(linkifier_ids) == present:
        return Decision(None)
    return Decision(None, (LinkifiersOrdered(linkifier_ids=tuple(linkifier_ids)),))


def _existing_linkifier(state: State, linkifier_id: int) -> Linkifier:
    linkifier = state.linkifiers.get(linkifier_id)
    if linkifier is None:
        raise Refused("This linkifier doesn't exist.")
    return linkifier


def _updated_linkifier(linkifier: Linkifier, given: LinkifierValues) -> Linkifier:
    values = {
        name: value for name, value in msgspec.structs.asdict(given).items() if value is not UNSET
    }
    for name in ("example_input", "reverse_template"):
        if name in values:
            values[name] = values[name] or None
    if "pattern" in values:
        values["pattern"] = values["pattern"].strip()
    if "alternative_url_templates" in values:
        values["alternative_url_templates"] = tuple(values["alternative_url_templates"])
    return msgspec.structs.replace(linkifier, **values)


def _checked(state: State, linkifier: Linkifier) -> Linkifier:
    """Return the normalized linkifier. Raise as `add`."""
    pattern = compile_pattern(linkifier.pattern)
    if any(o.pattern == linkifier.pattern for o in state.linkifiers if o.id != linkifier.id):
        raise Refused("Another linkifier already has this pattern.")
    groups = frozenset(pattern.groupindex)
    if len(linkifier.alternative_url_templates) > MAX_ALTERNATIVES:
        raise Refused(f"A linkifier can have at most {MAX_ALTERNATIVES} alternative URL templates.")
    first, *others = (
        _url_template(text, groups)
        for text in (linkifier.url_template, *linkifier.alternative_url_templates)
    )
    _check_example(linkifier, pattern)
    others_size = sum(_size(item) for item in state.linkifiers if item.id != linkifier.id)
    size = _size(linkifier)
    before = state.linkifiers.get(linkifier.id)
    if others_size + size > MAX_CHARACTERS and (before is None or size > _size(before)):
        raise Refused(
            f"All linkifiers together can have at most {MAX_CHARACTERS:,} characters. Shorten"
            " this one, or remove one that you no longer need."
        )
    return msgspec.structs.replace(
        linkifier, url_template=first, alternative_url_templates=tuple(others)
    )


def _size(linkifier: Linkifier) -> int:
    texts = (linkifier.example_input or "", linkifier.reverse_template or "")
    templates = (linkifier.url_template, *linkifier.alternative_url_templates)
    return sum(map(len, (linkifier.pattern, *templates, *texts)))


def pattern_options() -> Any:
    """Return the options for compiling patterns. They turn off RE2's own error log, since the
    refusal contains the error."""
    import re2  # type: ignore[import-untyped]  # it comes without types

    quiet = re2.Options()
    quiet.log_errors = False
    quiet.max_mem = MAX_PATTERN_BYTES
    return quiet


def between_words(pattern: str) -> str:
    """Return a pattern that matches only whole words. Its first group is the match."""
    return rf"(?:^|[^\pL\pN])({pattern})(?:$|[^\pL\pN])"


def compile_pattern(pattern: str) -> Any:
    """Compile the regular expression. Raise Refused if it's invalid. RE2 takes linear time, so it
    doesn't support backreferences and lookahead."""
    import re2

    if not 0 < len(pattern) <= MAX_PATTERN:
        raise Refused(f"A pattern must have 1 to {MAX_PATTERN} characters.")
    try:
        compiled = re2.compile(pattern, pattern_options())
        re2.compile(between_words(pattern), pattern_options())
        return compiled
    except re2.error as error:
        if "too large" in str(error):
            raise Refused(
                "This regular expression is too complex. Simplify it or make it shorter."
            ) from None
        raise Refused("This isn't a valid regular expression.") from None


def _url_template(text: str, groups: frozenset[str]) -> str:
    template, variables = url_template(text)
    for name in sorted(variables - groups):
        raise Refused(
            f"The URL template uses '{name}', but the pattern has no group with that name."
        )
    for name in sorted(groups - variables):
        raise Refused(f"Every URL template must use the group '{name}' of the pattern.")
    return template


def _check_example(linkifier: Linkifier, pattern: Any) -> None:
    example, template = linkifier.example_input, linkifier.reverse_template
    if any(text is not None and len(text) > MAX_TEXT for text in (example, template)):
        raise Refused(f"Examples and reverse templates can have at most {MAX_TEXT} characters.")
    if example is None:
        if template is not None:
            raise Refused("A reverse template needs an example to be checked against.")
        return
    match = pattern.fullmatch(example)
    if match is None:
        raise Refused("The pattern doesn't match the example.")
    if template is not None and fill_template(template, match.groupdict(default="")) != example:
        raise Refused("The reverse template doesn't reproduce the example.")


_PART: Final = re.compile(r"\{\{|\}\}|\{(\w+)\}|[^{}]+")


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Return the reverse template with its variables filled in. Raise Refused if it's invalid or
    names an unknown variable."""
    parts: list[str] = []
    end = 0
    for part in _PART.finditer(template):
        if part.start() != end:
            break
        end = part.end()
        name = part[1]
        if name is None:
            parts.append({"{{": "{", "}}": "}"}.get(part[0], part[0]))
        elif name in values:
            parts.append(values[name])
        else:
            raise Refused(
                f"The reverse template uses '{name}', but the pattern has no group with that name."
            )
    if end != len(template):
        raise Refused("The reverse template has an unmatched brace.")
    return "".join(parts)


MAX_PLAYGROUND_NAME: Final = 100


def add_playground(
    context: CommandContext, name: str, language: str, template: str
) -> Decision[int]:
    """Add a playground and return its ID. For administrators.

    Raise Refused for an invalid name, language, or template, variables other than `code`, and a
    name that the language's playgrounds already have.
    """
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    template, variables = url_template(template)
    if variables != {"code"}:
        raise Refused("The URL template must contain the variable 'code', and no other.")
    playground = Playground(
        id=state.playgrounds.next_id(),
        name=_playground_name(name),
        language=names.lexer_name(language),
        url_template=template,
    )
    if any(
        (item.name, item.language) == (playground.name, playground.language)
        for item in state.playgrounds
    ):
        raise Refused("This language already has a playground with this name.")
    return Decision(playground.id, (PlaygroundAdded(playground=playground),))


def remove_playground(context: CommandContext, playground_id: int) -> Decision[None]:
    """Remove a playground. For administrators. Raise Refused if it doesn't exist."""
    permissions.require_administrator(context.state, context.actor)
    if playground_id not in context.state.playgrounds:
        raise Refused("This playground doesn't exist.")
    return Decision(None, (PlaygroundRemoved(playground_id=playground_id),))


def _playground_name(text: str) -> str:
    name = text.strip()
    if not 0 < len(name) <= MAX_PLAYGROUND_NAME or not names.is_printable(name):
        raise Refused(
            f"A playground's name must have 1 to {MAX_PLAYGROUND_NAME} visible characters."
        )
    return name
