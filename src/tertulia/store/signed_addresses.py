"""Addresses that open one object of S3 for a while, and say with which headers (AWS Signature
Version 4).

obstore signs addresses, but none that say with which headers the object is answered: such an
address is made of one of its own, and signed anew with the secret key.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

ALGORITHM: Final = "AWS4-HMAC-SHA256"
WINDOW_SECONDS: Final = 300
"""Addresses that are made within so long are the same, so that browsers know the file again. Each
opens it for once to twice as long."""
_STAMP: Final = "%Y%m%dT%H%M%SZ"


def with_headers(address: str, secret_key: str, headers: dict[str, str], now: float) -> str:
    """The signed address, with these parameters (`response-content-type`, …) besides, good from the
    beginning of the window that `now` is in."""
    parts = urlsplit(address)
    values = dict(parse_qsl(parts.query, keep_blank_values=True)) | headers
    del values["X-Amz-Signature"]
    begun = datetime.fromtimestamp(now - now % WINDOW_SECONDS, UTC)
    key_id, _, scope = values["X-Amz-Credential"].partition("/")
    scope = "/".join([begun.strftime("%Y%m%d"), *scope.split("/")[1:]])
    values |= {
        "X-Amz-Credential": f"{key_id}/{scope}",
        "X-Amz-Date": begun.strftime(_STAMP),
        "X-Amz-Expires": str(2 * WINDOW_SECONDS),
    }
    query = "&".join(f"{_encoded(name)}={_encoded(values[name])}" for name in sorted(values))
    signature = _signature(parts.netloc, parts.path, query, values["X-Amz-Date"], scope, secret_key)
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{query}&X-Amz-Signature={signature}"


def _signature(host: str, path: str, query: str, stamp: str, scope: str, secret_key: str) -> str:
    request = f"GET\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    return _hmac(key, f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}").hex()


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")
