"""Request parameters, declared once as types.

An endpoint's arguments after `call` define the decoding, the error messages, the ignored
parameters, and the OpenAPI document. An endpoint that passes all of them on as one value has a
single argument `params` instead: a `Params` struct, whose fields are the parameters.

Every parameter is sent as text: plain text if its type is a string or a set of strings, otherwise
JSON. `Path()` marks a part of the URL, `Alias(...)` gives other names, and `Reads(...)` a custom
decoder.
"""

import inspect
import re
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.wire.http.errors import BadParameter, ConfusingParameters, MissingParameter

SAFE_INTEGER = 2**53
"""The largest integer that every client can represent."""

Int = Annotated[int, Meta(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]
"""An integer that clients and databases can represent."""


def Doc(description: str | None) -> Meta:  # noqa: N802
    """Describes a parameter or a field: `Annotated[int, Doc("In bytes.")]`."""
    return Meta(description=description)


class Params(Struct, kw_only=True, frozen=True):
    """The base of every endpoint's parameters."""


P = TypeVar("P", bound=Params)


def with_optional(kinds: Mapping[str, Any]) -> Callable[[type[P]], type[P]]:
    """Return a decorator that adds parameters to a struct, by name and type. They're UNSET if they
    aren't sent."""

    def added(params: type[P]) -> type[P]:
        fields = [(name, _or_unset(kind), UNSET) for name, kind in kinds.items()]
        made = msgspec.defstruct(
            params.__name__,
            fields,
            bases=(params,),
            module=params.__module__,
            namespace={"__doc__": params.__doc__},
            kw_only=True,
            frozen=True,
        )
        return cast(type[P], made)

    return added


def _or_unset(kind: Any) -> Any:
    if get_origin(kind) is Annotated:
        return Annotated[(_or_unset(kind.__origin__), *kind.__metadata__)]
    return Union[kind, UnsetType]  # noqa: UP007


@dataclass(frozen=True)
class Path:
    """Marks a field that is part of the URL."""


IntPath = Annotated[Int, Path()]
TextPath = Annotated[str, Path()]


@dataclass(frozen=True)
class Alias:
    """Other names of a parameter."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class Reads:
    """A custom decoder, for parameters that are neither a plain string nor plain JSON.

    `read` raises ValueError with a reason. `schema` is the JSON schema. With `text`, any text can
    be a value, so `null` is a text like any other.
    """

    read: Callable[[str], Any]
    schema: Mapping[str, Any]
    text: bool = False


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter, ready for decoding."""

    name: str
    aliases: tuple[str, ...]
    in_path: bool
    required: bool
    is_json: bool
    absent_as_null: bool
    """Whether the text `null` stands for a missing value."""
    nullable: bool
    """Whether None is a valid value."""
    read: Callable[[str], Any]
    type: Any
    schema: Mapping[str, Any] | None
    """The schema, if the decoder is custom."""
    default: Any
    description: str


Declaration = type[Params] | Callable[..., Awaitable[Any]]
"""A struct of parameters, or an endpoint."""


@cache
def declared(by: Declaration) -> tuple[Parameter, ...]:
    """Return the parameters that a struct or an endpoint declares."""
    params = by if isinstance(by, type) else by.__annotations__.get("params")
    if params is not None:
        hints = typing.get_type_hints(params, include_extras=True)
        return tuple(
            _parameter(field.name, hints[field.name], field.default, required=field.required)
            for field in msgspec.structs.fields(params)
        )
    hints = typing.get_type_hints(by, include_extras=True)
    _, *arguments = inspect.signature(by).parameters.values()
    return tuple(
        _parameter(
            argument.name,
            hints[argument.name],
            argument.default,
            required=argument.default is argument.empty,
        )
        for argument in arguments
    )


def _parameter(name: str, hint: Any, default: Any, *, required: bool) -> Parameter:
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    aliases = next((m.names for m in marks if isinstance(m, Alias)), ())
    reads = next((m for m in marks if isinstance(m, Reads)), None)
    bounds = [m for m in marks if isinstance(m, Meta)]
    bare = hint.__origin__ if get_origin(hint) is Annotated else hint
    is_text, quoted = _text_kind(bare)
    value_type = Annotated[(bare, *bounds)] if bounds else bare
    if reads is not None:
        read = reads.read
    elif is_text:
        read = _text_reader(value_type, unquote=quoted)
    else:
        read = _json_reader(value_type)
    if not is_text:
        read = _bounded(read)
    return Parameter(
        name=name,
        aliases=aliases,
        in_path=any(isinstance(m, Path) for m in marks),
        required=required,
        is_json=reads is None and not is_text,
        absent_as_null=not required and not (reads.text if reads else is_text),
        nullable=type(None) in _options(bare),
        read=read,
        type=value_type,
        schema=reads.schema if reads else None,
        default=None if required or default is msgspec.NODEFAULT else default,
        description=next((m.description for m in bounds if m.description), ""),
    )


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _text_kind(hint: Any) -> tuple[bool, bool]:
    """Return whether values are plain text, and whether they come from a set (then quotes are
    accepted)."""
    if get_origin(hint) in {Union, types.UnionType}:
        kinds = [
            _text_kind(option) for option in get_args(hint) if option not in {type(None), UnsetType}
        ]
        return all(text for text, _ in kinds), any(quoted for _, quoted in kinds)
    if get_origin(hint) is Annotated:
        return _text_kind(hint.__origin__)
    if get_origin(hint) is Literal:
        is_text = all(isinstance(value, str) for value in get_args(hint))
        return is_text, is_text
    return hint is str, False


MAX_JSON_VALUES = 100_000
"""The most values in a JSON parameter, including nested ones. More take too long to decode."""


def _bounded(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def bounded(text: str) -> Any:
        # Commas in strings matter only if there are too many.
        if (
            len(text) > MAX_JSON_VALUES
            and _commas(text) > MAX_JSON_VALUES
            and _commas(_without_strings(text)) > MAX_JSON_VALUES
        ):
            raise ValueError(f"it has more than {MAX_JSON_VALUES:,} values")
        return read(text)

    return bounded


def _commas(text: str) -> int:
    """Count the characters that precede values: a comma, or `[` or `{` before the first."""
    return sum(map(text.count, ",[{"))


def _without_strings(text: str) -> str:
    """Return the structure of a JSON text, without its strings."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    return "".join(unescaped.split('"')[::2])


_NULL_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A null byte in JSON: an escape whose backslash isn't escaped itself."""


def _json_reader(kind: Any) -> Callable[[str], Any]:
    decoder = msgspec.json.Decoder(without_unset(kind))

    def read(text: str) -> Any:
        try:
            value = decoder.decode(text)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise ValueError("it isn't valid JSON") from None
        if "\\u0000" in text and _NULL_BYTE.search(text):
            raise ValueError("it contains a null byte")
        return value

    return read


def _text_reader(kind: Any, *, unquote: bool) -> Callable[[str], Any]:
    plain = without_unset(kind)
    is_any_text = plain in (str, str | None)
    bare = plain.__origin__ if get_origin(plain) is Annotated else plain
    words = frozenset(get_args(bare)) if get_origin(bare) is Literal else frozenset()

    def read(text: str) -> Any:
        if unquote and len(text) >= 2 and text[0] == text[-1] == '"':
            text = text[1:-1]
        if "\0" in text:
            raise ValueError("it contains a null byte")
        if is_any_text or text in words:
            return text
        try:
            return msgspec.convert(text, plain)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    return read


def without_unset(kind: Any) -> Any:
    """Return the type without UNSET, which only means that nothing was sent."""
    if get_origin(kind) is Annotated:
        bare = without_unset(kind.__origin__)
        return Annotated[(bare, *kind.__metadata__)]
    if get_origin(kind) in {Union, types.UnionType}:
        return Union[tuple(o for o in get_args(kind) if o is not UnsetType)]  # noqa: UP007
    return kind


def decode(
    by: Declaration, sent: Mapping[str, str], path: Mapping[str, str]
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the values of parameters by name, and the names that were sent but are unknown.

    `sent` is the query or the form, and `path` has the variable parts of the URL. Raises
    MissingParameter, BadParameter, ConfusingParameters.
    """
    values: dict[str, Any] = {}
    for parameter in declared(by):
        source = path if parameter.in_path else sent
        name = parameter.name
        text = source.get(name)
        for alias in parameter.aliases:
            other = sent.get(alias)
            if other is None:
                continue
            if text is not None:
                raise ConfusingParameters(name, alias)
            name, text = alias, other
        if text is None:
            if parameter.required:
                raise MissingParameter(parameter.name)
            continue
        if text == "null" and parameter.absent_as_null:
            if parameter.nullable:
                values[parameter.name] = None
            continue
        try:
            values[parameter.name] = parameter.read(text)
        except ValueError as error:
            raise BadParameter(name, str(error)) from None
    known = _known(by)
    return values, [name for name in sent if name not in known]


@cache
def _known(by: Declaration) -> frozenset[str]:
    """Return the accepted names."""
    sent = [parameter for parameter in declared(by) if not parameter.in_path]
    return frozenset(name for parameter in sent for name in (parameter.name, *parameter.aliases))


async def call_endpoint(
    endpoint: Callable[..., Awaitable[Any]], call: Any, values: Mapping[str, Any]
) -> Any:
    """Call an endpoint with the values of its parameters."""
    params = endpoint.__annotations__.get("params")
    if params is not None:
        return await endpoint(call, params(**values))
    return await endpoint(call, **values)
