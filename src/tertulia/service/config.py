"""The settings of the server: which there are. `tertulia.app.config` reads them.

Settings of the organization are in the database and not here.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tertulia.store.bucket_files import S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_places import files_at, opened_files
from tertulia.store.files import Files
from tertulia.store.s3_address import s3_address

SECRETS = frozenset(
    {"secret", "smtp_password", "s3_secret_access_key", "bigbluebutton_secret", "jwt_secret"}
)
"""The settings that are shown to nobody."""
OF_ONE_NODE = frozenset(
    {
        *("data_dir", "database_url", "host", "port", "node_name", "metrics_allowed"),
        *("unix_socket", "unix_socket_mode", "tls_cert", "tls_key"),
        *("workers", "drain_seconds", "worker", "bus"),
        # Of `secret`, `tertulia serve` makes sure; digests of others could be guessed.
        *SECRETS,
        "s3_access_key_id",
        *(
            "log_level",
            "log_format",
            "access_log",
            "slow_request_ms",
            "longest_wait_ms",
            "external_content_cache_mib",
        ),
        *("mail_in_listen", "connections_per_address", "least_bytes_per_second", "proxy_trusted"),
    }
)
"""The settings that may be others on each node, beside those that are nobody else's business."""

MASK = "********"
"""What is shown in place of one."""
S3 = "s3://"
"""Begins the address of a bucket."""
AUTO = "auto"
"""As many workers as there are cores."""


class Config(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Every setting, with its default; the descriptions are what `tertulia config` prints."""

    data_dir: Annotated[
        str,
        Meta(description="Directory of the database file, the secret and uploaded files."),
    ] = "tertulia-data"
    database_url: Annotated[
        str,
        Meta(
            description="postgresql://user:password@host/name to use PostgreSQL; empty for an"
            " SQLite file in the data directory."
        ),
    ] = ""
    files_url: Annotated[
        str,
        Meta(
            description="Where uploaded files and pictures are: the directory `files` in the data"
            " directory (empty, or disk), or a bucket of S3 or the like, as"
            " s3://bucket/prefix?region=…&endpoint=…"
        ),
    ] = ""
    files_also_at: Annotated[
        str,
        Meta(
            description="Where files are that are not at files_url yet: disk, or an address as"
            " there. `tertulia move-files` moves them. Empty: nowhere."
        ),
    ] = ""
    file_downloads: Annotated[
        str,
        Meta(
            pattern="^(stream|redirect)$",
            description="How people get files out of a bucket: through this server (stream), or"
            " from the bucket, by an address that opens one file for some minutes (redirect).",
        ),
    ] = "stream"
    s3_access_key_id: Annotated[
        str,
        Meta(
            description="Key of the account that opens the bucket. Empty: AWS_ACCESS_KEY_ID and its"
            " like in the environment, or the machine's role."
        ),
    ] = ""
    s3_secret_access_key: Annotated[str, Meta(description="Its secret.")] = ""
    backup_to: Annotated[
        str,
        Meta(
            description="Where a backup is put each day: a directory, or a bucket as in files_url"
            " (with the same keys). Empty: none is made."
        ),
    ] = ""
    backup_hour: Annotated[
        int, Meta(ge=0, le=23, description="The hour at which it is made, of UTC.")
    ] = 3
    backup_keep_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36_500,
            description="Of so many days the last backup is kept there; the others are deleted.",
        ),
    ] = 7
    backup_keep_weeks: Annotated[
        int, Meta(ge=0, le=5_200, description="And of so many weeks the last one.")
    ] = 4
    backup_files: Annotated[
        bool,
        Meta(
            description="Uploaded files and pictures are in it. Without: see to it that where they"
            " are has copies of its own."
        ),
    ] = True
    backup_recipients: Annotated[
        str,
        Meta(
            description="Who can open it: recipients of age, divided by commas (`tertulia backups"
            " new-key FILE` makes one; keep FILE elsewhere). Empty: it is not encrypted."
        ),
    ] = ""
    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 picks one.")] = 9991
    unix_socket: Annotated[
        str,
        Meta(
            description="Path of a socket to listen at, behind a proxy on this machine, in place of"
            " host and port. Whoever may open it is believed X-Forwarded-For and"
            " X-Forwarded-Proto."
        ),
    ] = ""
    unix_socket_mode: Annotated[
        str,
        Meta(pattern="^[0-7]{3}$", description="Who may open it: its mode, as for chmod."),
    ] = "660"
    tls_cert: Annotated[
        str,
        Meta(
            description="File with the certificate and those that lead to its authority, in PEM, to"
            " speak TLS without a proxy. Read again when it changes. Empty: plain HTTP."
        ),
    ] = ""
    tls_key: Annotated[
        str, Meta(description="File with its key, in PEM; empty where it is in the same file.")
    ] = ""
    workers: Annotated[
        str,
        Meta(
            pattern="^(auto|[1-9][0-9]?)$",
            description="Processes that serve side by side, on one address and one database: about"
            " one for each core. auto: as many as there are cores to use.",
        ),
    ] = "1"
    drain_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="A server that is told to stop goes on for so long, with /ready at 503: the"
            " time that a load balancer needs to notice.",
        ),
    ] = 0
    external_url: Annotated[
        str,
        Meta(
            description="Address by which people reach the server, for example"
            " https://chat.example.com. Empty: the one that each request came by."
        ),
    ] = ""
    secret: Annotated[
        str,
        Meta(
            description="Seals API keys in the database; the same on every node. Empty: the file"
            " `secret` in the data directory, made with the organization."
        ),
    ] = ""
    dev: Annotated[
        bool,
        Meta(description="Development endpoints that sign in without a password. Never in public."),
    ] = False
    log_level: Annotated[
        str, Meta(pattern="^(debug|info|warning|error)$", description="Least level of log lines.")
    ] = "info"
    log_format: Annotated[
        str, Meta(pattern="^(text|json)$", description="Log lines as key=value text or as JSON.")
    ] = "text"
    access_log: Annotated[
        bool,
        Meta(
            description="Lines of requests say also from which address they came, and by which"
            " program (User-Agent). Polls, of which there are thousands, have neither."
        ),
    ] = False
    slow_request_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=600_000,
            description="A request whose answer begins after so many milliseconds, without waiting"
            " for its client, is a line of the log, and shown to owners; 0 for none.",
        ),
    ] = 1000
    max_body_mib: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Largest request with a picture (avatar, logo, emoji), in MiB. Requests"
            " without files have at most 1 MiB, and uploaded files a limit of their own.",
        ),
    ] = 8
    max_file_upload_size_mib: Annotated[
        int, Meta(ge=0, le=10_000, description="Largest uploaded file, in MiB.")
    ] = 100
    can_access_all_users_group_limits_presence: Annotated[
        bool,
        Meta(
            description="Guests who may not know of every account hear of the presence of those"
            " alone of whom they may know."
        ),
    ] = True
    upload_quota_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000_000,
            description="Room for all uploaded files together, in MiB; 0 for as much as there is.",
        ),
    ] = 0
    unclaimed_upload_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36500,
            description="An uploaded file that no message links is deleted after so many days.",
        ),
    ] = 35
    external_content: Annotated[
        bool,
        Meta(
            description="Pictures and films that messages link elsewhere on the web are shown;"
            " this server fetches them when somebody looks, so that no reader is known there."
            " Only from public addresses."
        ),
    ] = True
    external_content_cache_mib: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Room on the disk for what was fetched so, in MiB."),
    ] = 500
    link_previews: Annotated[
        bool,
        Meta(
            description="Organizations may have previews of the pages that messages link, which"
            " this server fetches when a message was sent. Needs external_content."
        ),
    ] = True
    longest_wait_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=3_600_000,
            description="A request that would have to wait so many milliseconds for others is"
            " refused at once, with Retry-After; 0 for never.",
        ),
    ] = 1000
    event_queue_longpoll_timeout_seconds: Annotated[
        int,
        Meta(
            ge=5,
            le=600,
            description="How long clients should wait for an answer of GET /events; heartbeats"
            " come well before.",
        ),
    ] = 90
    queue_idle_seconds: Annotated[
        int,
        Meta(ge=10, le=604800, description="An event queue that nobody polls is kept so long."),
    ] = 600
    queues_per_user: Annotated[
        int, Meta(ge=1, le=100_000, description="Event queues that one account may have.")
    ] = 100
    web_public_streams_enabled: Annotated[
        bool,
        Meta(
            description="Whether an organization may open channels to everybody on the web; it"
            " has a setting of its own besides."
        ),
    ] = True
    agents: Annotated[
        bool,
        Meta(
            description="Whether people may let agents (programs that speak MCP, mostly language"
            " models) act for them, at /mcp."
        ),
    ] = True
    log_retention_days: Annotated[
        int,
        Meta(
            ge=8,
            le=36500,
            description="The log of changes is kept so long; queues older than that register"
            " anew. Messages and everything else are not concerned.",
        ),
    ] = 30
    smtp_host: Annotated[
        str,
        Meta(
            description="Server that sends mails; it needs external_url, where their links lead."
            " Empty: mails are written to the directory `mail` in the data directory."
        ),
    ] = ""
    smtp_port: Annotated[
        int, Meta(ge=1, le=65535, description="Its port: 587 for starttls, 465 for tls.")
    ] = 587
    smtp_security: Annotated[
        str,
        Meta(
            pattern="^(starttls|tls|none)$",
            description="How the connection to it is encrypted: asked for at its beginning, from"
            " its beginning, or not at all.",
        ),
    ] = "starttls"
    smtp_user: Annotated[str, Meta(description="Name to sign in with there; empty: none.")] = ""
    smtp_password: Annotated[str, Meta(description="Password to sign in with there.")] = ""
    mail_from: Annotated[
        str,
        Meta(
            description="Address that mails come from, for example Chat <chat@example.com>. Empty:"
            " noreply@ and the host of external_url."
        ),
    ] = ""
    mail_in_pattern: Annotated[
        str,
        Meta(
            pattern=r"^$|^[A-Za-z0-9._+-]*%s[A-Za-z0-9._+-]*@[A-Za-z0-9.-]+$",
            description="Addresses whose mails become messages, with %s for what is different in"
            " each, for example chat+%s@example.com. Your mail server hands mails to them over at"
            " mail_in_listen. Empty: none are taken.",
        ),
    ] = ""
    mail_in_listen: Annotated[
        str,
        Meta(
            description="Where such mails are handed over: lmtp://127.0.0.1:2424, or smtp:// and"
            " so on. Nothing is asked of who connects: keep it to your own mail server."
        ),
    ] = ""
    mail_in_max_mib: Annotated[
        int, Meta(ge=1, le=200, description="Largest mail that is taken, in MiB.")
    ] = 25
    invitation_link_validity_minutes: Annotated[
        int,
        Meta(ge=1, le=52_704_000, description="Invitations last so long unless they say."),
    ] = 14_400
    invitations_per_day: Annotated[
        int, Meta(ge=0, le=1_000_000, description="Invitations that are mailed in 24 hours.")
    ] = 100
    password_min_length: Annotated[
        int, Meta(ge=1, le=100, description="Characters that a new password has at least.")
    ] = 8
    password_min_guesses: Annotated[
        int,
        Meta(
            ge=0,
            le=10**15,
            description="Guesses that a new password takes at least, by the estimate of zxcvbn; 0"
            " for any but the person's address or name, or the organization's.",
        ),
    ] = 1_000_000
    confirm_password_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=525_600,
            description="A browser that was signed in longer ago is asked for the password again"
            " before it changes an address, a key or a role, or deactivates an account; 0 for"
            " never.",
        ),
    ] = 15
    session_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="Browsers sign in again after so many days, however much they are used; 0"
            " for never. Those that are not used do after 30.",
        ),
    ] = 365
    hsts_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=63_072_000,
            description="Where external_url is https, browsers are told to come by https only for"
            " so many seconds; 0 to say nothing.",
        ),
    ] = 31_536_000
    rate_limits: Annotated[
        bool,
        Meta(
            description="Requests of one account, and those from one address, are limited as the"
            " next three settings say; with --dev never."
        ),
    ] = True
    requests_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="Requests that one account may make at once, and again in each minute."
            " GET /events is counted apart, files not at all.",
        ),
    ] = 1_000
    polls_per_minute: Annotated[
        int, Meta(ge=1, le=10_000_000, description="The same for GET /events.")
    ] = 10_000
    anonymous_requests_per_minute: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000_000,
            description="The same for requests without an account, from one address; of IPv6, from"
            " one network of 64 bits.",
        ),
    ] = 600
    connections_per_address: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Connections that may be open to one address at once (of IPv6, to one"
            " network of 64 bits), and half of all at most; 0 for any number. Not for this machine"
            " and proxy_trusted, behind which are many.",
        ),
    ] = 1_000
    least_bytes_per_second: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="A client that sends a request's body more slowly, or takes an answer more"
            " slowly, is hung up on after a while; 0 for only those that stand still.",
        ),
    ] = 1_024
    bigbluebutton_url: Annotated[
        str,
        Meta(
            pattern=r"^(https?://\S+)?$",
            description="Address of a BigBlueButton server at which organizations may hold video"
            " calls, as https://calls.example.com/bigbluebutton/. Empty: none.",
        ),
    ] = ""
    bigbluebutton_secret: Annotated[
        str, Meta(description="The secret that it shares with programs that use it.")
    ] = ""
    giphy_api_key: Annotated[
        str,
        Meta(
            pattern=r"^[\w-]{0,200}$",
            description="A key of GIPHY's, with which people look for animated pictures to send."
            " Their browsers and programs are told it, and ask GIPHY themselves. Empty: none do.",
        ),
    ] = ""
    klipy_api_key: Annotated[
        str,
        Meta(
            pattern=r"^[\w-]{0,200}$",
            description="The same of KLIPY's. The web client asks GIPHY where there are both.",
        ),
    ] = ""
    jwt_secret: Annotated[
        str,
        Meta(
            pattern="^(|.{32,})$",
            description="A program that shares this secret, of 32 characters or more, signs people"
            " in with JSON web tokens (POST /jwt/fetch_api_key). Empty: none does.",
        ),
    ] = ""
    proxy_trusted: Annotated[
        str,
        Meta(
            description="Addresses of reverse proxies whose X-Forwarded-For and"
            " X-Forwarded-Proto are believed, separated by commas."
        ),
    ] = "127.0.0.1"

    node_name: Annotated[
        str,
        Meta(
            pattern=r"^[^\s/]{0,60}$",
            description="This node's name in `tertulia nodes` and in metrics; empty for the"
            " machine's.",
        ),
    ] = ""
    outgoing_webhooks: Annotated[
        bool,
        Meta(
            description="Whether bots may have a service that this server calls by HTTP when"
            " somebody writes to them."
        ),
    ] = True
    outgoing_webhook_networks: Annotated[
        str,
        Meta(
            description="Addresses and networks, separated by commas, that services of bots and"
            " feeds may be in although they are not on the internet: 127.0.0.1, 10.1.0.0/16."
        ),
    ] = ""
    embedded_bots: Annotated[
        str,
        Meta(
            description="Bots of the package zulip_bots that people may have this server run, each"
            " in a process of its own: names, separated by commas, or all. Needs"
            " pip install 'tertulia[bots]'. Empty: none."
        ),
    ] = ""
    web_push: Annotated[
        bool,
        Meta(
            description="Whether people are told by push on phones and in browsers that are closed:"
            " Web Push, by the services of the browsers' makers or of people's own choice."
        ),
    ] = True
    web_push_networks: Annotated[
        str,
        Meta(
            description="Addresses and networks, separated by commas, that push services may be in"
            " although they are not on the internet; without TLS too where an address of theirs"
            " names a machine by its number."
        ),
    ] = ""
    feed_minutes: Annotated[
        int,
        Meta(
            ge=0,
            le=10_080,
            description="Feeds (RSS, Atom) that bots follow are read so often; 0 for never, and"
            " then none can be followed.",
        ),
    ] = 15
    metrics_allowed: Annotated[
        str,
        Meta(
            description="Addresses and networks that may read /metrics, separated by commas; this"
            " machine may in any case."
        ),
    ] = ""

    def digests_of_shared(self) -> Mapping[str, str]:
        """The settings that must be the same on all nodes, each as a digest that differs where they
        do."""
        return {
            name: hashlib.sha256(repr(getattr(self, name)).encode()).hexdigest()[:12]
            for name in self.__struct_fields__
            if name not in OF_ONE_NODE
        }

    @property
    def upload_quota(self) -> int | None:
        """Bytes that all uploaded files together may have; None for as many as there is room."""
        return self.upload_quota_mib * 1024 * 1024 or None

    @property
    def address_host(self) -> str:
        """The host in the addresses that stand for hidden ones: `user7@…`."""
        return urlsplit(self.external_url).hostname or "tertulia.invalid"

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)

    @property
    def files_path(self) -> Path:
        """Where uploaded files and pictures are, or arrive."""
        return self.data_path / "files"

    @property
    def s3_keys(self) -> S3Keys:
        """What opens the bucket."""
        return S3Keys(key_id=self.s3_access_key_id, secret=self.s3_secret_access_key)

    def opened_files(self) -> tuple[Files, DiskFiles]:
        """The files, and the disk of this machine on which they are or arrive."""
        return opened_files(self.files_path, self.files_url, self.files_also_at, self.s3_keys)

    def opened_backups(self) -> Files:
        """The place for backups."""
        if self.backup_to.startswith(S3):
            here = DiskFiles(self.data_path)
            return files_at(self.backup_to, here, self.s3_keys)
        return DiskFiles(Path(self.backup_to))

    @property
    def file_origins(self) -> list[str]:
        """Where browsers are sent for files: scheme and host of each bucket."""
        if self.file_downloads != "redirect":
            return []
        places = (s3_address(self.files_url), s3_address(self.files_also_at))
        return [place.origin for place in places if place is not None]

    @property
    def is_https(self) -> bool:
        """Whether people reach the server by https, and only so."""
        return self.external_url.startswith("https:")

    @property
    def session_seconds(self) -> int | None:
        """How long a session lasts at most, however much it is used."""
        return self.session_days * 86400 or None

    @property
    def mail_site(self) -> str:
        """Where links in mails lead: the configured address, or the one that the server listens
        on. Never the one by which a request came, which whoever sends it chooses."""
        host = self.host.strip("[]")
        if host in {"", "0.0.0.0", "::"}:  # noqa: S104 (nothing is bound here)
            host = "localhost"
        host = f"[{host}]" if ":" in host else host
        if self.unix_socket:
            return self.external_url or "http://localhost"
        scheme = "https" if self.tls_cert else "http"
        return self.external_url or f"{scheme}://{host}:{self.port}"

    @property
    def tells_by_mail(self) -> bool:
        """Whether people are told by mail of what they miss: where mails are sent, or looked at.
        Otherwise they would pile up in the directory."""
        return bool(self.smtp_host) or self.dev

    @property
    def worker(self) -> int | None:
        """Which of the server's workers the process is, from 0; None where it is alone."""
        return None

    @property
    def bus(self) -> Path | None:
        """The directory by which the server's workers know each other; None where there are
        none."""
        return None

    @property
    def place(self) -> str:
        """Where the organization is, in words that give no password away."""
        return "the database" if self.database_url else self.data_dir


class WorkerConfig(Config, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The settings of one of several workers, and which it is. None of that is for an operator to
    set: the supervisor says it."""

    worker: int
    bus: Path


def without_password(url: str) -> str:
    """The address with its password hidden, wherever it is in it; any other text as it is."""
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
