"""Generate requests from our OpenAPI document, and send them."""

import json
import os
import zlib
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case, GenerationMode
from schemathesis.core import NotSet
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)

from tests import contract

SHORT = 6
EXAMPLES = int(os.environ.get("FUZZ", SHORT))
"""Requests of each kind (valid and invalid) per endpoint."""

SPARED = frozenset({"account_api_keys"})
"""Parameters that would end the key that the other requests use."""

SMALL = 15
"""IDs below this number mostly exist."""


@cache
def schema() -> schemathesis.BaseSchema:
    schema: schemathesis.BaseSchema = schemathesis.openapi.from_dict(contract.described())
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    schema.config.phases.coverage.unexpected_methods = set()
    return schema


def nearer(value: Any) -> Any:
    """Replace most numbers in the value with numbers that may be existing IDs."""
    match value:
        case bool():
            return value
        case int():
            return abs(value) % SMALL if value % 7 else value
        case list():
            return [nearer(one) for one in value]
        case dict():
            return {key: nearer(one) for key, one in value.items()}
        case _:
            return value


def pick_of(case: Case[Any]) -> int:
    """A number derived from the case."""
    every = (case.path_parameters, case.query, case.body)
    return zlib.crc32(repr(every).encode(errors="replace"))


def existing(case: Case[Any], pick: int) -> dict[str, Any]:
    """Path parameters with plausible IDs for numbers."""
    return {
        name: pick % SMALL if str(value).lstrip("-").isdecimal() else value
        for name, value in (case.path_parameters or {}).items()
    }


def fewer(values: Any, required: Collection[str], pick: int) -> Any:
    """Usually leave out all but one or two of the optional parameters, because among many, one is
    almost always invalid."""
    if not isinstance(values, dict):
        return values
    if pick % 4 == 0:
        return {name: value for name, value in values.items() if name not in SPARED}
    rest = [name for name in values if name not in required]
    kept = {rest[(pick >> shift) % len(rest)] for shift in (4, 12)} if rest else set()
    kept -= SPARED
    return {name: value for name, value in values.items() if name in required or name in kept}


def written(values: Any, schemas: dict[str, dict[str, Any]]) -> Any:
    """The parameters as text: strings unchanged, everything else as JSON."""
    if not isinstance(values, dict):
        return values
    return {
        name: value
        if isinstance(value, str) and schemas.get(name, {}).get("type") not in {"array", "object"}
        else json.dumps(value)
        for name, value in values.items()
    }


def parameters_of(operation: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """An operation's parameter schemas, and the names of the required ones."""
    schemas: dict[str, dict[str, Any]] = {}
    required: set[str] = set()
    for one in operation.get("parameters", ()):
        content = one.get("content", {}).get("application/json", {})
        schemas[one["name"]] = one.get("schema") or content["schema"]
        if one["required"]:
            required.add(one["name"])
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schemas.update(content["schema"].get("properties", {}))
        required.update(content["schema"].get("required", ()))
    return schemas, required


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    derandomize=EXAMPLES <= SHORT,
)
def answered_as_documented(case: Case[Any], client: httpx.Client) -> None:
    schemas, required = parameters_of(case.operation.definition.raw)
    pick = pick_of(case)
    case.path_parameters = existing(case, pick)
    sent = None if isinstance(case.body, NotSet) else fewer(case.body, required, pick)
    body = written(nearer(sent), schemas)
    query = written(nearer(fewer(case.query, required, pick)), schemas)
    response = client.request(
        case.method,
        f"/api/v1{case.formatted_path}",
        params=query,
        **({"data": body} if isinstance(body, dict) else {"content": json.dumps(body)}),
    )
    assert response.status_code < 500, response.text
    if response.status_code == 401 and "api_key" not in query:
        # A random password is wrong. Any other 401 means that the session has ended.
        assert response.json()["code"] == "AUTHENTICATION_FAILED", "the account or its key is gone"
    contract.checked(case.method, response.url.path.removeprefix("/api/v1"), response)


def sending(method: str, path: str) -> Callable[..., None]:
    """Sends an endpoint's requests with a `client`, and fails if a response doesn't match the
    document."""
    config = HypothesisTestConfig(project=schema().config, modes=list(HypothesisTestMode))
    operation = schema()[path][method]
    test: Callable[..., None] = create_test(
        operation=operation, test_func=answered_as_documented, config=config
    )
    return test
