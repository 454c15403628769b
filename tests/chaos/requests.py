"""Requests to nodes that may not answer."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from tests.chaos.cluster import Node
from tests.chaos.record import Attempt, Outcome

CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class Account:
    """Credentials."""

    user_id: int
    email: str
    api_key: str


@dataclass
class Answer:
    """The response, or status 0 if there was no response."""

    status: int
    body: dict[str, Any]
    outcome: Outcome

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))

    def __str__(self) -> str:
        return f"{self.status} {self.body.get('msg') or self.code or ''}"


class NodeClient:
    """Sends requests as one account. Every request has a timeout."""

    def __init__(self, account: Account) -> None:
        self.account = account
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=8)
        self._http = httpx.AsyncClient(
            auth=(account.email, account.api_key), limits=limits, trust_env=False
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(
        self, node: Node, method: str, path: str, patience: float, **parameters: Any
    ) -> Answer:
        """Send a request to the node, with a timeout in seconds."""
        texts = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in parameters.items()
        }
        place = "params" if method == "GET" else "data"
        try:
            response = await self._http.request(
                method,
                f"{node.url}/api/v1{path}",
                timeout=httpx.Timeout(patience, connect=CONNECT_SECONDS),
                **{place: texts},  # type: ignore[arg-type]
            )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Answer(0, {"msg": repr(error)}, Outcome.REFUSED)  # Nothing was sent.
        except httpx.TransportError as error:
            return Answer(0, {"msg": repr(error)}, Outcome.UNKNOWN)
        try:
            body = response.json()
        except ValueError:
            body = {"msg": response.text[:200]}
        node.has_served = True
        return Answer(response.status_code, body, _outcome(response))

    async def attempt(
        self, attempt: Attempt, node: Node, method: str, path: str, patience: float, **more: Any
    ) -> Answer:
        """Send a request that changes something, and record the outcome in the attempt."""
        answer = await self.ask(node, method, path, patience, **more)
        attempt.outcome, attempt.answer = answer.outcome, str(answer)
        return answer


def _outcome(response: httpx.Response) -> Outcome:
    if response.status_code == 200:
        return Outcome.DONE
    if response.status_code < 500:
        return Outcome.REFUSED
    # 429 and 503 with Retry-After mean that nothing was done.
    if response.status_code == 503 and "retry-after" in response.headers:
        return Outcome.REFUSED
    return Outcome.UNKNOWN
