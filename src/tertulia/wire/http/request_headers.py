"""A request's headers as they came: names in small letters, and values as bytes.

Starlette's `Request.headers` is the same for people; it decodes and compares anew for each name.
"""

from collections.abc import Mapping, Sequence

Headers = Sequence[tuple[bytes, bytes]]


def header(headers: Headers, name: bytes) -> str | None:
    """The first header of that name; None where there is none."""
    for one, value in headers:
        if one == name:
            return value.decode("latin-1")
    return None


def first_of_each(headers: Headers) -> Mapping[bytes, bytes]:
    """The headers by their names; of several of a name, the first."""
    return dict(reversed(headers))
