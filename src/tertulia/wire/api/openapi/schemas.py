"""JSON schemas of the types of requests and responses.

msgspec describes types that consist of plain values. Objects are described here, since responses
may contain types that msgspec can't decode, and should be described more strictly: an object has
exactly the fields of its struct, and all of them except those that may be unset.
"""

import inspect
import types
from collections.abc import Iterator
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.wire.http.parameters import without_unset

Json = dict[str, Any]

REF: Final = "#/components/schemas/"
_UNIONS: Final = frozenset({Union, types.UnionType})


class Schemas:
    """Collects the components that schemas refer to.

    With `sent`, a type is described as in responses: closed and complete. Otherwise, it's described
    as in requests: with defaults, and open to fields that are ignored.
    """

    def __init__(self) -> None:
        self.components: dict[str, Json] = {}
        self._names: dict[tuple[type[Struct], bool], str] = {}

    def of(self, kind: Any, *, sent: bool) -> Json:
        """Return the schema of a type. Structs are references to components."""
        if _is_struct(kind):
            return {"$ref": REF + self.name_of(kind, sent=sent)}
        if not any(_is_struct(part) for part in _parts(kind)):
            return self._plain(kind)
        arguments = get_args(kind)
        origin = get_origin(kind)
        if origin is Annotated:
            return _marked(self.of(arguments[0], sent=sent), arguments[1:])
        if origin in _UNIONS:
            options = [self.of(o, sent=sent) for o in arguments if o is not UnsetType]
            return options[0] if len(options) == 1 else {"anyOf": options}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(arguments[1], sent=sent)}
        if origin is tuple and arguments[-1] is not Ellipsis:
            parts = [self.of(part, sent=sent) for part in arguments]
            count = len(parts)
            return {"type": "array", "prefixItems": parts, "minItems": count, "maxItems": count}
        return {"type": "array", "items": self.of(arguments[0], sent=sent)}

    def name_of(self, struct: type[Struct], *, sent: bool) -> str:
        """Return the name of the struct's component, adding the component if necessary."""
        key = (struct, sent)
        if key not in self._names:
            module = struct.__module__.rpartition(".")[2].title().replace("_", "")
            names = [struct.__name__, f"{module}{struct.__name__}"]
            if not sent:
                names += [f"{name}Parameter" for name in names]
            taken = set(self._names.values()) | set(self.components)
            self._names[key] = next(name for name in names if name not in taken)
            self.components[self._names[key]] = self._struct(struct, sent=sent)
        return self._names[key]

    def _plain(self, kind: Any) -> Json:
        bare = without_unset(kind)
        (schema,), components = msgspec.json.schema_components([bare], ref_template=REF + "{name}")
        self.components.update(components)
        return schema

    def _struct(self, struct: type[Struct], *, sent: bool) -> Json:
        config = struct.__struct_config__
        schema: Json = {"title": struct.__name__, "type": "object"}
        if struct.__dict__.get("__doc__"):
            schema["description"] = inspect.cleandoc(struct.__doc__ or "")
        properties: Json = {}
        required: list[str] = []
        if config.tag_field is not None:
            properties[config.tag_field] = {"enum": [config.tag]}
            required.append(config.tag_field)
        for field in msgspec.structs.fields(struct):
            described = self.of(field.type, sent=sent)
            may_be_absent = UnsetType in get_args(field.type) or config.omit_defaults
            if field.required or (sent and not may_be_absent):
                required.append(field.encode_name)
            elif not sent and field.default not in (msgspec.NODEFAULT, UNSET):
                described = {**described, "default": msgspec.to_builtins(field.default)}
            properties[field.encode_name] = described
        schema |= {"properties": properties, "required": required}
        if sent:
            schema["additionalProperties"] = False
        return schema


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _parts(kind: Any) -> Iterator[Any]:
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def _marked(schema: Json, marks: tuple[Any, ...]) -> Json:
    for mark in marks:
        if isinstance(mark, Meta):
            if mark.description:
                schema = {**schema, "description": mark.description}
            if mark.max_length is not None:
                schema = {**schema, "maxItems": mark.max_length}
            if mark.min_length is not None:
                schema = {**schema, "minItems": mark.min_length}
    return schema
