"""The settings of a file storage: the disk, or `s3://bucket/prefix?region=…&endpoint=…`."""

import hashlib
import hmac
import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec import Struct

from tertulia.model.site_addresses import site

DISK: Final = "disk"
"""The setting for the directory `files` in the data directory."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_STYLES: Final = ("path", "host")
_ENCRYPTIONS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
_PARAMETERS: Final = ("region", "endpoint", "style", "encryption", "kms_key")


class S3Address(Struct, frozen=True, kw_only=True):
    """A bucket and how to reach it."""

    bucket: str
    prefix: str
    """The prefix of all paths; may be empty."""
    region: str
    endpoint: str
    """The service's URL, or "" for Amazon's in the region."""
    is_host_style: bool
    """Whether the host rather than the path names the bucket."""
    encryption: str
    """Server-side encryption, or "" for the bucket's default."""
    kms_key: str

    @property
    def origin(self) -> str:
        """Scheme and host of file URLs."""
        if self.endpoint:
            parts = urlsplit(self.endpoint)
            host = f"{self.bucket}.{parts.netloc}" if self.is_host_style else parts.netloc
            return f"{parts.scheme}://{host}"
        host = f"s3.{self.region}.amazonaws.com"
        return f"https://{self.bucket}.{host}" if self.is_host_style else f"https://{host}"

    def __str__(self) -> str:
        return f"s3://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")


def s3_address(url: str) -> S3Address | None:
    """Parse a setting. Return None for the disk. Raise ValueError with a sentence for the
    operator."""
    if url in {"", DISK}:
        return None
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ValueError("it isn't a valid URL") from None
    if parts.scheme != "s3":
        raise ValueError("it must be 'disk' or a URL like s3://bucket/prefix?region=…")
    if "@" in parts.netloc:
        raise ValueError(
            "it can't contain credentials: use the settings s3_access_key_id and"
            " s3_secret_access_key"
        )
    given = dict(pairs)
    unknown = sorted(set(given) - set(_PARAMETERS))
    if unknown or len(given) < len(pairs) or parts.fragment:
        raise ValueError(
            f"the available parameters are {', '.join(_PARAMETERS)}, and each can be used only once"
        )
    prefix = parts.path.strip("/")
    if not _BUCKET.fullmatch(parts.netloc):
        raise ValueError(f"'{parts.netloc}' isn't a valid bucket name")
    if prefix and (not _PREFIX.fullmatch(prefix) or {".", ".."} & set(prefix.split("/"))):
        raise ValueError(
            f"the prefix '{prefix}' can contain only letters, digits, periods, hyphens, and"
            " underscores"
        )
    region = given.get("region", "us-east-1")
    if not _REGION.fullmatch(region):
        raise ValueError(f"'{region}' isn't a valid region")
    _require(given.get("style", "path"), _STYLES, "style")
    encryption = given.get("encryption", "")
    _require(encryption or _ENCRYPTIONS[0], _ENCRYPTIONS, "encryption")
    if "kms_key" in given and not encryption.startswith("aws:kms"):
        raise ValueError("kms_key requires encryption=aws:kms")
    return S3Address(
        bucket=parts.netloc,
        prefix=prefix,
        region=region,
        endpoint=_endpoint(given.get("endpoint", "")),
        is_host_style=given.get("style") == "host",
        encryption=encryption,
        kms_key=given.get("kms_key", ""),
    )


def _require(value: str, known: tuple[str, ...], name: str) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not '{value}'")


def _endpoint(text: str) -> str:
    if not text:
        return ""
    try:
        return site(text)
    except ValueError:
        raise ValueError(
            f"the endpoint '{text}' isn't a URL like https://s3.example.com, with http or"
            " https, a host, and optionally a port"
        ) from None


ALGORITHM: Final = "AWS4-HMAC-SHA256"
WINDOW_SECONDS: Final = 300
"""The length of a window in seconds. URLs made within a window are equal, so that browsers can
cache the file. Each works for one to two windows."""
_STAMP: Final = "%Y%m%dT%H%M%SZ"


def with_headers(address: str, secret_key: str, headers: dict[str, str], now: float) -> str:
    """Return the signed URL with more parameters (`response-content-type`, …), valid from the
    start of the window that `now` is in."""
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
