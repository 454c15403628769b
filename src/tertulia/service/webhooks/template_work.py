"""Rendering templates of bots' owners, in a worker."""

import json
from collections.abc import Iterator
from typing import Any


def load(templates: list[str], payload: str, longest: int) -> None:
    """Load what `rendered` needs."""
    import jinja2.sandbox  # noqa: F401 (its time does not count)


def rendered(templates: list[str], payload: str, longest: int) -> list[str]:
    """What the templates make of the JSON text, each no longer than so many characters. Only looks
    whether they are templates, where that is empty.

    Names of an object are variables of their own, and all of it is `payload`. What is missing is
    empty. Raises jinja2.TemplateError, and what a template can raise.
    """
    from jinja2 import ChainableUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=ChainableUndefined, autoescape=False)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    found = [environment.from_string(template) for template in templates]
    if not payload:
        return []
    value: Any = json.loads(payload)
    names = value if isinstance(value, dict) else {}
    variables = {name: one for name, one in names.items() if name.isidentifier()}
    return [
        _beginning(template.generate({**variables, "payload": value}), longest)
        for template in found
    ]


def _beginning(pieces: Iterator[str], longest: int) -> str:
    size, found = 0, []
    for piece in pieces:
        found.append(piece[: longest - size])
        size += len(found[-1])
        if size >= longest:
            break
    return "".join(found)
