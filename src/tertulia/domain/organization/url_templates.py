"""URL templates (RFC 6570), as administrators give them."""

import re
from typing import Final

from tertulia.domain import names
from tertulia.model.errors import Refused

MAX_TEMPLATE: Final = 2000

_NAME: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARIABLE: Final = rf"({_NAME})(?::[1-9][0-9]{{0,3}}|\*)?"
_EXPRESSION: Final = re.compile(rf"\{{[+#./;?&]?({_VARIABLE}(?:,{_VARIABLE})*)\}}")
_LITERAL: Final = re.compile(r"(?:[^\s\x00-\x20\"%<>\\^`{|}]|%[0-9A-Fa-f]{2})*")
_RUNS_CODE: Final = ("javascript:", "vbscript:", "data:")


def url_template(text: str) -> tuple[str, frozenset[str]]:
    """The template in its final form, and the names of its variables. Refused when it is none, or
    leads to a place that runs code."""
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
        variables.update(re.split(r"[:*]", one, maxsplit=1)[0] for one in expression[1].split(","))
    _check_literal(template[end:])
    return template, frozenset(variables)


def _check_literal(text: str) -> None:
    if not _LITERAL.fullmatch(text):
        raise Refused("This isn't a valid URL template.")
