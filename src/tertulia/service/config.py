"""Declarations of the server's settings, which `tertulia.app.config` reads. The organization's
settings are in the database."""

import hashlib
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tertulia.store.bucket_files import S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_moves import files_at, opened_files
from tertulia.store.files import Files
from tertulia.store.s3_addresses import s3_address


class SettingMark(Enum):
    """Properties of a setting in addition to its type, limits, default, and description."""

    PER_NODE = "can differ between nodes"
    SECRET = "is shown to no one; digests of it could be guessed"  # noqa: S105


PER_NODE: Final = SettingMark.PER_NODE
SECRET: Final = SettingMark.SECRET

MASK = "********"
"""Shown instead of a secret."""
S3 = "s3://"
"""Scheme of a bucket's URL."""
AUTO = "auto"
"""One worker for each core."""


class Config(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """All settings. `tertulia config` prints the descriptions."""

    data_dir: Annotated[
        str,
        Meta(description="Data directory, with the database file, the secret, and uploaded files."),
        PER_NODE,
    ] = "tertulia-data"
    database_url: Annotated[
        str,
        Meta(
            description="PostgreSQL database, as postgresql://user:password@host/name. Empty:"
            " an SQLite file in the data directory."
        ),
        PER_NODE,
    ] = ""
    files_url: Annotated[
        str,
        Meta(
            description="Where uploaded files and pictures are stored: in the directory `files`"
            " of the data directory (empty, or disk), or in an S3 or compatible"
            " bucket, as s3://bucket/prefix?region=…&endpoint=…"
        ),
    ] = ""
    files_also_at: Annotated[
        str,
        Meta(
            description="Where to look for files that aren't in files_url yet: disk, or an"
            " address like files_url. `tertulia move-files` moves them. Empty:"
            " nowhere."
        ),
    ] = ""
    file_downloads: Annotated[
        str,
        Meta(
            pattern="^(stream|redirect)$",
            description="How people download files from a bucket: through this server (stream),"
            " or directly from the bucket, with a URL that opens one file for a few"
            " minutes (redirect).",
        ),
    ] = "stream"
    s3_access_key_id: Annotated[
        str,
        Meta(
            description="Access key ID for the bucket. Empty: AWS_ACCESS_KEY_ID and related"
            " environment variables, or the role of the machine."
        ),
        PER_NODE,
    ] = ""
    s3_secret_access_key: Annotated[
        str, Meta(description="Secret access key for the bucket."), SECRET
    ] = ""
    backup_to: Annotated[
        str,
        Meta(
            description="Where to store a backup every day: a directory, or a bucket as in"
            " files_url (with the same keys). Empty: no automatic backups."
        ),
    ] = ""
    backup_hour: Annotated[
        int, Meta(ge=0, le=23, description="Hour of the daily backup, in UTC.")
    ] = 3
    backup_keep_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36_500,
            description="Number of days for which the last backup of the day is kept. Older"
            " backups are deleted.",
        ),
    ] = 7
    backup_keep_weeks: Annotated[
        int,
        Meta(
            ge=0,
            le=5_200,
            description="Number of weeks for which the last backup of the week is kept.",
        ),
    ] = 4
    backup_files: Annotated[
        bool,
        Meta(
            description="Include uploaded files and pictures in automatic backups. If you turn"
            " this off, make sure that the place where they're stored has its own"
            " backups."
        ),
    ] = True
    backup_recipients: Annotated[
        str,
        Meta(
            description="age recipients who can open automatic backups, separated by commas"
            " (`tertulia backups new-key FILE` creates one; keep FILE off this"
            " machine). Empty: backups aren't encrypted."
        ),
    ] = ""
    host: Annotated[str, Meta(description="Address to listen on."), PER_NODE] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="Port to listen on; 0 picks one."), PER_NODE
    ] = 9991
    unix_socket: Annotated[
        str,
        Meta(
            description="Path of a Unix socket to listen on instead of host and port, for a"
            " reverse proxy on the same machine. X-Forwarded-For and"
            " X-Forwarded-Proto are trusted from everyone who can open the socket."
        ),
        PER_NODE,
    ] = ""
    unix_socket_mode: Annotated[
        str,
        Meta(
            pattern="^[0-7]{3}$",
            extra={"expected": "three octal digits, such as 660"},
            description="Mode of the Unix socket, as for chmod. It sets who can open the socket.",
        ),
        PER_NODE,
    ] = "660"
    tls_cert: Annotated[
        str,
        Meta(
            description="PEM file with the certificate and its chain, to use TLS without a"
            " reverse proxy. Reloaded when it changes. Empty: plain HTTP."
        ),
        PER_NODE,
    ] = ""
    tls_key: Annotated[
        str,
        Meta(
            description="PEM file with the private key of the certificate. Empty: it's in"
            " the same file."
        ),
        PER_NODE,
    ] = ""
    workers: Annotated[
        str,
        Meta(
            pattern="^(auto|[1-9][0-9]?)$",
            extra={"expected": "auto or a number from 1 to 99"},
            description="Number of worker processes, which share one address and one database."
            " auto: one for each core that the server can use.",
        ),
        PER_NODE,
    ] = "1"
    drain_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="Seconds for which a server that's stopping keeps serving, while /ready"
            " returns 503, so that a load balancer notices.",
        ),
        PER_NODE,
    ] = 0
    external_url: Annotated[
        str,
        Meta(
            description="Address that people use to reach the server, such as"
            " https://chat.example.com. Empty: the address of each request."
        ),
    ] = ""
    secret: Annotated[
        str,
        Meta(
            description="Secret that encrypts API keys in the database; the same on every node."
            " Empty: the file `secret` in the data directory, which is created with"
            " the organization."
        ),
        SECRET,
    ] = ""
    dev: Annotated[
        bool,
        Meta(
            description="Turn on endpoints that sign in without a password, for development."
            " Never use this on a public server."
        ),
    ] = False
    log_level: Annotated[
        str,
        Meta(pattern="^(debug|info|warning|error)$", description="Minimum level of log lines."),
        PER_NODE,
    ] = "info"
    log_format: Annotated[
        str,
        Meta(pattern="^(text|json)$", description="Format of log lines: key=value text, or JSON."),
        PER_NODE,
    ] = "text"
    access_log: Annotated[
        bool,
        Meta(
            description="Log the client's address and user agent with each request, except for"
            " polls."
        ),
        PER_NODE,
    ] = False
    slow_request_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=600_000,
            description="Log requests whose response starts after this many milliseconds or"
            " more, not counting time spent waiting for the client, and show them"
            " to owners. 0: don't log them.",
        ),
        PER_NODE,
    ] = 1000
    max_body_mib: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Maximum size of a request with an image (avatar, logo, or emoji), in"
            " MiB. Requests without files are limited to 1 MiB, and uploaded files"
            " have their own limit.",
        ),
    ] = 8
    max_file_upload_size_mib: Annotated[
        int, Meta(ge=0, le=10_000, description="Maximum size of an uploaded file, in MiB.")
    ] = 100
    can_access_all_users_group_limits_presence: Annotated[
        bool,
        Meta(
            description="Guests who can't see all users get presence only of the users they can"
            " see."
        ),
    ] = True
    upload_quota_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000_000,
            description="Maximum size of all uploaded files together, in MiB. 0: no limit.",
        ),
    ] = 0
    unclaimed_upload_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36500,
            description="Days until an uploaded file that no message links to is deleted.",
        ),
    ] = 35
    external_content: Annotated[
        bool,
        Meta(
            description="Show images and videos that messages link to. This server fetches them"
            " when someone views the message, so that other sites don't see who"
            " reads it. Public addresses only."
        ),
    ] = True
    external_content_cache_mib: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Maximum size of the cache of fetched images and videos, in MiB.",
        ),
        PER_NODE,
    ] = 500
    link_previews: Annotated[
        bool,
        Meta(
            description="Allow organizations to show previews of pages that messages link to."
            " This server fetches the pages when a message is sent. Requires"
            " external_content."
        ),
    ] = True
    longest_wait_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=3_600_000,
            description="Reject requests that would wait this many milliseconds for other"
            " requests, with Retry-After. 0: never reject.",
        ),
        PER_NODE,
    ] = 1000
    event_queue_longpoll_timeout_seconds: Annotated[
        int,
        Meta(
            ge=5,
            le=600,
            description="Seconds that clients should wait for a response to GET /events. The"
            " server sends heartbeats well before that.",
        ),
    ] = 90
    queue_idle_seconds: Annotated[
        int,
        Meta(
            ge=10,
            le=604800,
            description="Seconds for which an event queue is kept while no client polls it.",
        ),
    ] = 600
    queues_per_user: Annotated[
        int, Meta(ge=1, le=100_000, description="Maximum number of event queues of one account.")
    ] = 100
    web_public_streams_enabled: Annotated[
        bool,
        Meta(
            description="Allow organizations to have web-public channels. Each organization has"
            " its own setting, too."
        ),
    ] = True
    agents: Annotated[
        bool,
        Meta(
            description="Allow people to let agents (programs that use MCP, usually language"
            " models) act for them, at /mcp."
        ),
    ] = True
    log_retention_days: Annotated[
        int,
        Meta(
            ge=8,
            le=36500,
            description="Days for which the change log is kept. Event queues that are further"
            " behind have to register again. Messages and other data aren't"
            " affected.",
        ),
    ] = 30
    smtp_host: Annotated[
        str,
        Meta(
            description="Mail server that sends emails. Requires external_url, which links in"
            " emails lead to. Empty: emails are written to the directory `mail` in"
            " the data directory."
        ),
    ] = ""
    smtp_port: Annotated[
        int,
        Meta(
            ge=1,
            le=65535,
            description="Port of the mail server: usually 587 for starttls, and 465 for tls.",
        ),
    ] = 587
    smtp_security: Annotated[
        str,
        Meta(
            pattern="^(starttls|tls|none)$",
            description="Encryption of the connection to the mail server: STARTTLS, TLS from"
            " the start, or none.",
        ),
    ] = "starttls"
    smtp_user: Annotated[
        str, Meta(description="User name for the mail server. Empty: don't sign in.")
    ] = ""
    smtp_password: Annotated[str, Meta(description="Password for the mail server."), SECRET] = ""
    mail_from: Annotated[
        str,
        Meta(
            description="Sender of emails, such as Chat <chat@example.com>. Empty: noreply@ and"
            " the host of external_url."
        ),
    ] = ""
    mail_in_pattern: Annotated[
        str,
        Meta(
            pattern=r"^$|^[A-Za-z0-9._+-]*%s[A-Za-z0-9._+-]*@[A-Za-z0-9.-]+$",
            extra={"expected": "an email address with %s in it, such as chat+%s@example.com"},
            description="Email addresses that receive messages, with %s for the part that"
            " differs, such as chat+%s@example.com. Your mail server delivers"
            " emails for them to mail_in_listen. Empty: incoming email is turned"
            " off.",
        ),
    ] = ""
    mail_in_listen: Annotated[
        str,
        Meta(
            description="Where your mail server delivers incoming emails:"
            " lmtp://127.0.0.1:2424, or the same with smtp://. Anyone who can"
            " connect can deliver emails, so allow only your mail server."
        ),
        PER_NODE,
    ] = ""
    mail_in_max_mib: Annotated[
        int, Meta(ge=1, le=200, description="Maximum size of an incoming email, in MiB.")
    ] = 25
    invitation_link_validity_minutes: Annotated[
        int,
        Meta(
            ge=1,
            le=52_704_000,
            description="Default number of minutes until an invitation expires.",
        ),
    ] = 14_400
    invitations_per_day: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum number of invitations that are emailed in 24 hours.",
        ),
    ] = 100
    password_min_length: Annotated[
        int, Meta(ge=1, le=100, description="Minimum length of a new password, in characters.")
    ] = 8
    password_min_guesses: Annotated[
        int,
        Meta(
            ge=0,
            le=10**15,
            description="Minimum number of guesses to crack a new password, as estimated by"
            " zxcvbn. 0: reject only the person's email address and name, and the"
            " organization's name.",
        ),
    ] = 1_000_000
    confirm_password_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=525_600,
            description="Minutes after signing in until a browser has to confirm the password"
            " before it changes an email address, a key, or a role, or deactivates"
            " an account. 0: never.",
        ),
    ] = 15
    session_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="Days until browsers have to sign in again, even if they're in use. 0:"
            " no limit. Browsers that aren't used have to sign in again after 30"
            " days.",
        ),
    ] = 365
    hsts_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=63_072_000,
            description="If external_url uses HTTPS, the number of seconds for which browsers"
            " use only HTTPS (Strict-Transport-Security). 0: don't send the header.",
        ),
    ] = 31_536_000
    rate_limits: Annotated[
        bool,
        Meta(
            description="Limit the requests of one account and of one address, as set by the"
            " next three settings. Always off with --dev."
        ),
    ] = True
    requests_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="Requests that one account can make per minute, and in a burst. GET"
            " /events has its own limit, and files don't count.",
        ),
    ] = 1_000
    polls_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="GET /events requests that one account can"
            " make per minute, and in a burst.",
        ),
    ] = 10_000
    anonymous_requests_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="Requests without an account that one IPv4 address or IPv6 /64 network"
            " can make per minute, and in a burst.",
        ),
    ] = 600
    connections_per_address: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum number of connections from one IPv4 address or IPv6 /64"
            " network, and never more than half of all connections. 0: no limit."
            " Doesn't apply to this machine and to proxy_trusted, because many"
            " clients share a proxy's address.",
        ),
        PER_NODE,
    ] = 1_000
    least_bytes_per_second: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Disconnect clients that send a request body or receive a response more"
            " slowly than this many bytes per second. 0: disconnect only clients"
            " that transfer nothing at all.",
        ),
        PER_NODE,
    ] = 1_024
    bigbluebutton_url: Annotated[
        str,
        Meta(
            pattern=r"^(https?://\S+)?$",
            extra={"expected": "an http:// or https:// URL"},
            description="Address of a BigBlueButton server that organizations can use for video"
            " calls, such as https://calls.example.com/bigbluebutton/. Empty: not"
            " available.",
        ),
    ] = ""
    bigbluebutton_secret: Annotated[
        str,
        Meta(description="Secret of the BigBlueButton server, as printed by `bbb-conf --secret`."),
        SECRET,
    ] = ""
    giphy_api_key: Annotated[
        str,
        Meta(
            pattern=r"^[\w-]{0,200}$",
            extra={"expected": "an API key of letters, digits, _, and -"},
            description="GIPHY API key for the GIF picker. Clients get the key and contact"
            " GIPHY directly. Empty: GIPHY isn't used.",
        ),
    ] = ""
    klipy_api_key: Annotated[
        str,
        Meta(
            pattern=r"^[\w-]{0,200}$",
            extra={"expected": "an API key of letters, digits, _, and -"},
            description="KLIPY API key for the GIF picker. If both keys are set, the web client"
            " uses GIPHY.",
        ),
    ] = ""
    jwt_secret: Annotated[
        str,
        Meta(
            pattern="^(|.{32,})$",
            extra={"expected": "empty or at least 32 characters long"},
            description="Secret, of at least 32 characters, with which another program signs"
            " people in with JSON web tokens (POST /jwt/fetch_api_key). Empty:"
            " turned off.",
        ),
        SECRET,
    ] = ""
    proxy_trusted: Annotated[
        str,
        Meta(
            description="Addresses of reverse proxies whose X-Forwarded-For and"
            " X-Forwarded-Proto headers are trusted, separated by commas."
        ),
        PER_NODE,
    ] = "127.0.0.1"

    node_name: Annotated[
        str,
        Meta(
            pattern=r"^[^\s/]{0,60}$",
            extra={"expected": "up to 60 characters without spaces and slashes"},
            description="Name of this node in `tertulia nodes` and in metrics. Empty: the"
            " machine's name.",
        ),
        PER_NODE,
    ] = ""
    outgoing_webhooks: Annotated[
        bool,
        Meta(
            description="Allow outgoing webhook bots, whose URL this server calls when someone"
            " sends them a message."
        ),
    ] = True
    outgoing_webhook_networks: Annotated[
        str,
        Meta(
            description="Additional addresses and networks that outgoing webhooks and feeds can"
            " use although they aren't on the internet, separated by commas, such"
            " as 127.0.0.1, 10.1.0.0/16."
        ),
    ] = ""
    embedded_bots: Annotated[
        str,
        Meta(
            description="Bots of the zulip_bots package that people can run on this server,"
            " each in a separate process: names separated by commas, or all."
            " Requires pip install 'tertulia[bots]'. Empty: none."
        ),
    ] = ""
    web_push: Annotated[
        bool,
        Meta(
            description="Send push notifications to phones and closed browsers with Web Push,"
            " through the push services of browsers or of people's choice."
        ),
    ] = True
    web_push_networks: Annotated[
        str,
        Meta(
            description="Networks of push services that aren't on the internet, separated by"
            " commas. Endpoints there that name an IP address can be used without"
            " TLS."
        ),
    ] = ""
    feed_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=10_080,
            description="Minutes between reads of the RSS and Atom feeds that bots follow. 0:"
            " feeds are turned off.",
        ),
    ] = 15
    metrics_allowed: Annotated[
        str,
        Meta(
            description="Addresses and networks that can read /metrics in addition to this"
            " machine, separated by commas."
        ),
        PER_NODE,
    ] = ""

    def digests_of_shared(self) -> Mapping[str, str]:
        """Digests of the settings that must be the same on all nodes."""
        return {
            name: hashlib.sha256(repr(getattr(self, name)).encode()).hexdigest()[:12]
            for name in self.__struct_fields__
            if name not in marked(PER_NODE, SECRET)
        }

    @property
    def upload_quota(self) -> int | None:
        """Maximum size of all uploaded files in bytes; None for no limit."""
        return self.upload_quota_mib * 1024 * 1024 or None

    @property
    def address_host(self) -> str:
        """The host of placeholder email addresses, such as `user7@…`."""
        return urlsplit(self.external_url).hostname or "tertulia.invalid"

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)

    @property
    def files_path(self) -> Path:
        """Directory of uploaded files and pictures."""
        return self.data_path / "files"

    @property
    def s3_keys(self) -> S3Keys:
        """Credentials for the bucket."""
        return S3Keys(key_id=self.s3_access_key_id, secret=self.s3_secret_access_key)

    def opened_files(self) -> tuple[Files, DiskFiles]:
        """The store of files, and the disk for uploads in progress."""
        return opened_files(self.files_path, self.files_url, self.files_also_at, self.s3_keys)

    def opened_backups(self) -> Files:
        """The store of backups."""
        if self.backup_to.startswith(S3):
            here = DiskFiles(self.data_path)
            return files_at(self.backup_to, here, self.s3_keys)
        return DiskFiles(Path(self.backup_to))

    @property
    def file_origins(self) -> list[str]:
        """Origins of the buckets that browsers are redirected to."""
        if self.file_downloads != "redirect":
            return []
        places = (s3_address(self.files_url), s3_address(self.files_also_at))
        return [place.origin for place in places if place is not None]

    @property
    def is_https(self) -> bool:
        """Whether the server is reached by HTTPS."""
        return self.external_url.startswith("https:")

    @property
    def session_seconds(self) -> int | None:
        """Longest duration of a session; None for no limit."""
        return self.session_days * 86400 or None

    @property
    def mail_site(self) -> str:
        """Base URL of links in emails: the configured URL, or the address that the server listens
        on. Never the URL of a request, which its sender chooses."""
        host = self.host.strip("[]")
        if host in {"", "0.0.0.0", "::"}:  # noqa: S104 (nothing is bound here)
            host = "localhost"
        host = f"[{host}]" if ":" in host else host
        if self.unix_socket:
            return self.external_url or "http://localhost"
        scheme = "https" if self.tls_cert else "http"
        return self.external_url or f"{scheme}://{host}:{self.port}"

    @property
    def sends_notification_emails(self) -> bool:
        """Whether missed-message emails are sent: only with a mail server, or in development.
        Otherwise they would pile up in the directory."""
        return bool(self.smtp_host) or self.dev

    @property
    def worker(self) -> int | None:
        """Number of this worker, from 0; None without workers."""
        return None

    @property
    def bus(self) -> Path | None:
        """Directory that connects the server's workers; None without workers."""
        return None

    @property
    def place(self) -> str:
        """Where the organization is stored, without secrets."""
        return "the database" if self.database_url else self.data_dir


class WorkerConfig(Config, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Settings of a worker, including those that the supervisor sets."""

    worker: Annotated[int, PER_NODE]
    bus: Annotated[Path, PER_NODE]


@cache
def marked(*marks: SettingMark) -> frozenset[str]:
    """The settings with one of these marks."""
    hints = typing.get_type_hints(WorkerConfig, include_extras=True)
    return frozenset(
        name
        for name in WorkerConfig.__struct_fields__
        if not set(marks).isdisjoint(hints[name].__metadata__)
    )


SECRETS: Final = marked(SECRET)
"""Settings that are shown to no one."""


def without_password(url: str) -> str:
    """The URL with its password hidden, whether before the host or in the query. Other text is
    returned unchanged."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return MASK if "@" in url else url
    if not parts.scheme or not (parts.netloc or parts.query):
        return url
    if password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.partition(':')[0]}:{MASK}@{host}")
    query = "&".join(
        f"password={MASK}" if one.startswith("password=") else one for one in parts.query.split("&")
    )
    return parts._replace(query=query).geturl()
