"""Rendering bots' templates, in a worker."""

import json
from collections.abc import Iterator
from typing import Any


def load(templates: list[str], payload: str, longest: int) -> None:
    """Load the libraries."""
    import jinja2.sandbox  # noqa: F401 (its time does not count)


def rendered(templates: list[str], payload: str, longest: int) -> list[str]:
    """Render the templates with a JSON text, truncated to `longest` characters. Only compile them
    if the text is empty.

    The fields of an object are variables, and `payload` is all of it. Missing values are empty.
    Raises jinja2.TemplateError, and what templates can raise.
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
