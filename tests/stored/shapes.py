"""The shapes of everything stored as JSON, because old databases must keep their meaning. Fields
with default values aren't stored, so a default is part of the shape: changing it would change the
meaning of old records.

`python -m tests.stored.shapes` rewrites `shapes.json`. Its diff is part of the change.
"""

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from tertulia.model.changes import AnyChange
from tertulia.model.mail import Mail
from tertulia.model.nouns import NOUNS
from tertulia.model.queues import QueueRecord
from tertulia.store.partial_uploads import PartialUpload

GOLDEN = Path(__file__).with_name("shapes.json")
OF_THE_LOG: tuple[Any, ...] = (*(noun.type for noun in NOUNS), AnyChange)
ROOTS: tuple[Any, ...] = (*OF_THE_LOG, QueueRecord, Mail, PartialUpload)

Shapes = dict[str, Any]
"""By struct, its tag and fields; by enumeration, its values."""


def shapes(roots: Sequence[Any] = ROOTS) -> Shapes:
    """The shapes in the code."""
    found: Shapes = {}
    for root in inspect.multi_type_info(roots):
        _describe(root, found)
    return dict(sorted(found.items()))


def written() -> str:
    """The shapes in the golden file."""
    return json.dumps(shapes(), indent=1, ensure_ascii=False) + "\n"


def _describe(type_: inspect.Type, found: Shapes) -> str:
    """Describe the type in words, and add its structs and enumerations to `found`."""
    match type_:
        case inspect.StructType():
            name = type_.cls.__name__
            if name not in found:
                found[name] = {}
                found[name] = {
                    "tag": type_.tag,
                    "fields": {
                        field.encode_name: _describe_field(field, found) for field in type_.fields
                    },
                }
            return name
        case inspect.EnumType():
            found[type_.cls.__name__] = {one.name: one.value for one in type_.cls}
            return type_.cls.__name__
        case inspect.UnionType():
            return " | ".join(_describe(one, found) for one in type_.types)
        case inspect.DictType():
            return f"{{{_describe(type_.key_type, found)}: {_describe(type_.value_type, found)}}}"
        case inspect.TupleType():
            return f"({', '.join(_describe(one, found) for one in type_.item_types)})"
        case inspect.CollectionType():
            return f"[{_describe(type_.item_type, found)}]"
        case inspect.LiteralType():
            return f"one of {list(type_.values)}"
        case inspect.Metadata():
            return _describe(type_.type, found)
        case inspect.CustomType():
            found[type_.cls.__name__] = {one.name: one.value for one in type_.cls}  # type: ignore[attr-defined]
            return type_.cls.__name__
        case _:
            return type(type_).__name__.removesuffix("Type").lower()


def _describe_field(field: inspect.Field, found: Shapes) -> Any:
    described = {"type": _describe(field.type, found)}
    if field.required:
        return described
    default = field.default_factory() if callable(field.default_factory) else field.default
    return {**described, "default": json.loads(msgspec.json.encode(default, enc_hook=_plain))}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else sorted(value)


if __name__ == "__main__":
    GOLDEN.write_text(written())
