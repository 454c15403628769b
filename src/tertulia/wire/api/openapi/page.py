"""The API documentation for people: HTML that works without scripts."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Final

from tertulia.wire.api.openapi.schemas import REF, Json

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_ACCESS: Final = {
    "none": "No authentication required.",
    "optional": "Authentication is optional if the organization allows public access.",
    "basic": "Authentication required.",
}
_CODE: Final = re.compile(r"`([^`]+)`")


def rendered(document: Json, *, styles: str, source: str) -> str:
    """Return the page. `styles` and `source` are the URLs of its stylesheet and of the document."""
    return "".join(_page(document, styles, source))


def _page(document: Json, styles: str, source: str) -> Iterator[str]:
    info = document["info"]
    title = f"{escape(info['title'])} API"
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{title}</title><link rel="stylesheet" href="{escape(styles)}"></head><body>'
    )
    sections = _sections(document)
    yield f'<nav aria-label="Endpoints"><a class="home" href="#top">{title}</a>'
    for name, _, operations in sections:
        yield f'<h2><a href="#{_anchor(name)}">{_heading(name)}</a></h2><ul>'
        for path, method, operation in operations:
            yield (
                f'<li><a href="#{_anchor(operation["operationId"])}">'
                f"{_badge(method)} {escape(path)}</a></li>"
            )
        yield "</ul>"
    yield (
        '<h2><a href="#happenings">Events</a></h2><h2><a href="#records">Objects</a></h2></nav>'
        f'<main id="top"><header><h1>{title}</h1><p class="lead">{escape(info["summary"])} '
        f"Version {escape(info['version'])}.</p>{_prose(info['description'])}"
        f'<p>This page is also available as an <a href="{escape(source)}">OpenAPI document</a>.</p>'
        "</header>"
    )
    for name, description, operations in sections:
        yield f'<section id="{_anchor(name)}"><h2>{_heading(name)}</h2>{_prose(description)}'
        for path, method, operation in operations:
            yield from _endpoint(document, path, method, operation)
        yield "</section>"
    yield from _records(document)
    yield "</main></body></html>"


def _sections(document: Json) -> list[tuple[str, str, list[tuple[str, str, Json]]]]:
    sections = []
    for tag in document["tags"]:
        operations = [
            (path, method, methods[method])
            for path, methods in document["paths"].items()
            for method in _METHODS
            if method in methods and tag["name"] in methods[method]["tags"]
        ]
        sections.append((tag["name"], tag["description"], operations))
    return sections


def _endpoint(document: Json, path: str, method: str, operation: Json) -> Iterator[str]:
    anchor = _anchor(operation["operationId"])
    yield (
        f'<article id="{anchor}"><h3><a href="#{anchor}">{_badge(method)} '
        f"<code>{escape(path)}</code></a></h3>{_prose(operation['description'])}"
        f'<p class="note">{_access(operation)}</p>'
    )
    rows = list(_parameters(operation))
    if rows:
        yield _table("Parameters", rows)
    body = _success(operation)
    fields = list(_response_fields(document, body))
    yield _table("Response", fields) if fields else '<p class="note">No further fields.</p>'
    errors = [
        f"<li><strong>{status}</strong> {_inline(response['description'])}</li>"
        for status, response in operation["responses"].items()
        if status != "200"
    ]
    yield f"<details><summary>Errors</summary><ul>{''.join(errors)}</ul></details></article>"


def _access(operation: Json) -> str:
    security = operation["security"]
    return _ACCESS["none" if not security else "optional" if {} in security else "basic"]


def _parameters(operation: Json) -> Iterator[str]:
    for value in operation.get("parameters", ()):
        schema = value.get("schema") or value["content"]["application/json"]["schema"]
        hint = "in the path" if value["in"] == "path" else _need(value["required"])
        yield _row(value["name"], schema, hint)
    if "requestBody" in operation:
        form = next(iter(operation["requestBody"]["content"].values()))["schema"]
        for name, schema in form.get("properties", {}).items():
            yield _row(name, schema, _need(name in form.get("required", ())))


def _success(operation: Json) -> Json:
    """Return the schema of the success response, or an empty one for a redirect."""
    content = operation["responses"].get("200", {}).get("content", {})
    schema: Json = content.get("application/json", {}).get("schema", {})
    return schema


def _need(required: bool) -> str:
    return "required" if required else ""


def _response_fields(document: Json, schema: Json) -> Iterator[str]:
    for option in schema.get("anyOf", [schema]):
        component = _component(document, option)
        if component is None:
            continue
        yield from _fields(component, {"result", "msg", "ignored_parameters_unsupported"})


def _component(document: Json, schema: Json) -> Json | None:
    name = schema.get("$ref", "").removeprefix(REF)
    component: Json | None = document["components"]["schemas"].get(name)
    return component


def _fields(component: Json, without: Iterable[str] = ()) -> Iterator[str]:
    required = component.get("required", ())
    for name, schema in component.get("properties", {}).items():
        if name not in without:
            yield _row(name, schema, "" if name in required else "may be absent")
    if component.get("additionalProperties") is True:
        yield '<tr><td colspan="3">and other fields</td></tr>'


def _records(document: Json) -> Iterator[str]:
    schemas = document["components"]["schemas"]
    events = [schema["$ref"].removeprefix(REF) for schema in schemas["Event"]["anyOf"]]
    responses = {
        option.get("$ref", "").removeprefix(REF)
        for methods in document["paths"].values()
        for operation in methods.values()
        for body in [_success(operation)]
        for option in body.get("anyOf", [body])
    }
    yield f'<section id="happenings"><h2>Events</h2>{_prose(schemas["Event"]["description"])}'
    yield '<p id="schema-Event">An event is one of the following:</p>'
    for name in events:
        yield from _record(name, schemas[name])
    yield '</section><section id="records"><h2>Objects</h2>'
    for name, schema in schemas.items():
        if name not in responses and name not in events and name != "Event":
            yield from _record(name, schema)
    yield "</section>"


def _record(name: str, schema: Json) -> Iterator[str]:
    anchor = f"schema-{_anchor(name)}"
    yield f'<article id="{anchor}"><h3><a href="#{anchor}">{escape(name)}</a></h3>'
    yield _prose(schema.get("description", ""))
    rows = list(_fields(schema))
    yield (_table("Fields", rows) if rows else f"<p>{_kind(schema)}</p>") + "</article>"


def _table(title: str, rows: Iterable[str]) -> str:
    return (
        f'<div class="scroll"><table><caption>{title}</caption><tbody>'
        f"{''.join(rows)}</tbody></table></div>"
    )


def _row(name: str, schema: Json, hint: str) -> str:
    hints = [hint] if hint else []
    if "default" in schema:
        hints.append(f"default: <code>{escape(_literal(schema['default']))}</code>")
    if "x-aliases" in schema:
        hints.append("alias: " + ", ".join(f"<code>{a}</code>" for a in schema["x-aliases"]))
    description = _inline(schema.get("description", ""))
    notes = f"<small>{'; '.join(hints)}</small>" if hints else ""
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{_kind(schema)}</td>'
        f"<td>{description} {notes}</td></tr>"
    )


def _literal(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return value if isinstance(value, str) else str(value)


def _kind(schema: Json) -> str:
    """Describe the type in words."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        return f'<a href="#schema-{_anchor(name)}">{escape(name)}</a>'
    if "const" in schema:
        return f"<code>{escape(_literal(schema['const']))}</code>"
    if "enum" in schema:
        return ", ".join(f"<code>{escape(_literal(value))}</code>" for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_kind(value) for value in schema[key])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(escape(value) for value in kind)
    if kind == "array":
        items = schema.get("items")
        if isinstance(items, dict) and items:
            return f"list of {_kind(items)}"
        parts = schema.get("prefixItems", ())
        return f"[{', '.join(_kind(part) for part in parts)}]" if parts else "list"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"object of {_kind(values)}" if isinstance(values, dict) else "object"
    return escape(str(kind))


def _badge(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _heading(tag: str) -> str:
    """Return the tag as words; the stylesheet capitalizes them."""
    return escape(tag.replace("_", " "))


def _anchor(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", name)


def _inline(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _prose(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n") if part.strip())
