"""Declarations of the server's settings. `service/config.py` derives values from them, and
`tertulia.app.config` reads them. The organization's settings are in the database."""

from enum import Enum
from typing import Annotated, Final

from msgspec import Meta, Struct

from tertulia.service.sign_in_methods import SignInMethod


class SettingMark(Enum):
    """Properties of a setting in addition to its type, limits, default, and description."""

    PER_NODE = "can differ between nodes"
    SECRET = "is shown to no one; digests of it could be guessed"  # noqa: S105


PER_NODE: Final = SettingMark.PER_NODE
SECRET: Final = SettingMark.SECRET


def _matching(pattern: str, expected: str) -> Meta:
    """Limit a setting to texts that match a pattern, described as `expected` in errors."""
    return Meta(pattern=pattern, extra={"expected": expected})


class ServerSettings(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """All settings. An annotation has a setting's type, limits, marks, and the description that
    `tertulia config` prints."""

    data_dir: Annotated[
        str, PER_NODE, "Data directory, with the database file, the secret, and uploaded files."
    ] = "tertulia-data"
    database_url: Annotated[
        str,
        PER_NODE,
        "PostgreSQL database, as postgresql://user:password@host/name. Empty: an SQLite file in"
        " the data directory.",
    ] = ""
    files_url: Annotated[
        str,
        "Storage for uploaded files and pictures: the directory `files` of the data directory"
        " (empty, or disk), or an S3 or compatible bucket, as"
        " s3://bucket/prefix?region=…&endpoint=…",
    ] = ""
    files_also_at: Annotated[
        str,
        "Storage for files that aren't in files_url yet: disk, or an address like files_url."
        " `tertulia files move` moves them. Empty: none.",
    ] = ""
    file_downloads: Annotated[
        str,
        Meta(pattern="^(stream|redirect)$"),
        "How people download files from a bucket: through this server (stream), or directly from"
        " the bucket, with a URL that opens one file for a few minutes (redirect).",
    ] = "stream"
    s3_access_key_id: Annotated[
        str,
        PER_NODE,
        "Access key ID for the bucket. Empty: AWS_ACCESS_KEY_ID and related environment"
        " variables, or the role of the machine.",
    ] = ""
    s3_secret_access_key: Annotated[str, SECRET, "Secret access key for the bucket."] = ""
    backup_to: Annotated[
        str,
        "Destination of a daily backup: a directory, or a bucket as in files_url (with the same"
        " keys). Empty: no automatic backups.",
    ] = ""
    backup_hour: Annotated[int, Meta(ge=0, le=23), "Hour of the daily backup, in UTC."] = 3
    backup_keep_days: Annotated[
        int,
        Meta(ge=1, le=36_500),
        "Number of days for which the last backup of the day is kept. Older backups are deleted.",
    ] = 7
    backup_keep_weeks: Annotated[
        int, Meta(ge=0, le=5_200), "Number of weeks for which the last backup of the week is kept."
    ] = 4
    backup_files: Annotated[
        bool,
        "Include uploaded files and pictures in automatic backups. If you turn this off, make"
        " sure that the place where they're stored has its own backups.",
    ] = True
    backup_recipients: Annotated[
        str,
        "age recipients who can open automatic backups, separated by commas (`tertulia backups"
        " new-key FILE` creates one; keep FILE off this machine). Empty: backups aren't encrypted.",
    ] = ""
    host: Annotated[str, PER_NODE, "Address to listen on."] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), PER_NODE, "Port to listen on; 0 picks one."] = 9991
    unix_socket: Annotated[
        str,
        PER_NODE,
        "Path of a Unix socket to listen on instead of host and port, for a reverse proxy on the"
        " same machine. X-Forwarded-For and X-Forwarded-Proto are trusted from everyone who can"
        " open the socket.",
    ] = ""
    unix_socket_mode: Annotated[
        str,
        _matching("^[0-7]{3}$", "three octal digits, such as 660"),
        PER_NODE,
        "Mode of the Unix socket, as for chmod. It sets who can open the socket.",
    ] = "660"
    tls_cert: Annotated[
        str,
        PER_NODE,
        "PEM file with the certificate and its chain, to use TLS without a reverse proxy."
        " Reloaded when it changes. Empty: plain HTTP.",
    ] = ""
    tls_key: Annotated[
        str,
        PER_NODE,
        "PEM file with the private key of the certificate. Empty: it's in the same file.",
    ] = ""
    workers: Annotated[
        str,
        _matching("^(auto|[1-9][0-9]?)$", "auto or a number from 1 to 99"),
        PER_NODE,
        "Number of worker processes, which share one address and one database. auto: one for each"
        " core that the server can use.",
    ] = "1"
    drain_seconds: Annotated[
        int,
        Meta(ge=0, le=3600),
        PER_NODE,
        "Seconds for which a server that's stopping keeps serving, while /ready returns 503, so"
        " that a load balancer notices.",
    ] = 0
    external_url: Annotated[
        str,
        "Address that people use to reach the server, such as https://chat.example.com. Empty:"
        " the address of each request.",
    ] = ""
    secret: Annotated[
        str,
        # Servers that were installed before this limit keep a shorter one in the file `secret`.
        _matching(
            "^(|.{32,})$",
            "empty or at least 32 random characters, such as `openssl rand -hex 32` prints",
        ),
        SECRET,
        "Secret, of at least 32 random characters, that encrypts API keys in the database; the same"
        " on every node. Empty: the file"
        " `secret` in the data directory, which is created with the organization.",
    ] = ""
    dev: Annotated[
        bool,
        "Turn on endpoints that sign in without a password, for development. Never use this on a"
        " public server. A server with this setting doesn't start if another node uses the"
        " database.",
    ] = False
    log_level: Annotated[
        str, Meta(pattern="^(debug|info|warning|error)$"), PER_NODE, "Minimum level of log lines."
    ] = "info"
    log_format: Annotated[
        str,
        Meta(pattern="^(text|json)$"),
        PER_NODE,
        "Format of log lines: key=value text, or JSON.",
    ] = "text"
    access_log: Annotated[
        bool,
        PER_NODE,
        "Log the client's address and user agent with each request, except for polls.",
    ] = False
    slow_request_ms: Annotated[
        int,
        Meta(ge=0, le=600_000),
        PER_NODE,
        "Log requests whose response starts after this many milliseconds or more, not counting"
        " time spent waiting for the client, and show them to owners. 0: don't log them.",
    ] = 1000
    max_body_mib: Annotated[
        int,
        Meta(ge=1, le=1024),
        "Maximum size of a request with an image (avatar, logo, or emoji), in MiB. Requests"
        " without files are limited to 1 MiB, and uploaded files have their own limit.",
    ] = 8
    max_import_size_mib: Annotated[
        int,
        Meta(ge=0, le=1_048_576),
        "Maximum size of an export of another chat server that an owner can upload in the browser,"
        " in MiB. 0: only `tertulia import` can import.",
    ] = 20_480
    max_file_upload_size_mib: Annotated[
        int, Meta(ge=0, le=10_000), "Maximum size of an uploaded file, in MiB."
    ] = 100
    can_access_all_users_group_limits_presence: Annotated[
        bool, "Guests who can't see all users get presence only of the users they can see."
    ] = True
    upload_quota_mib: Annotated[
        int,
        Meta(ge=0, le=100_000_000),
        "Maximum size of all uploaded files together, in MiB. 0: no limit.",
    ] = 0
    unclaimed_upload_days: Annotated[
        int,
        Meta(ge=1, le=36500),
        "Days until an uploaded file that no message links to is deleted.",
    ] = 35
    external_content: Annotated[
        bool,
        "Show images and videos that messages link to. This server fetches them when someone"
        " views the message, so that other sites don't see who reads it. Public addresses only.",
    ] = True
    external_content_cache_mib: Annotated[
        int,
        Meta(ge=1, le=1_000_000),
        PER_NODE,
        "Maximum size of the cache of fetched images and videos, in MiB.",
    ] = 500
    link_previews: Annotated[
        bool,
        "Allow organizations to show previews of pages that messages link to. This server fetches"
        " the pages when a message is sent. Requires external_content.",
    ] = True
    longest_wait_ms: Annotated[
        int,
        Meta(ge=0, le=3_600_000),
        PER_NODE,
        "Reject requests that would wait this many milliseconds for other requests, with"
        " Retry-After. 0: never reject.",
    ] = 1000
    event_queue_longpoll_timeout_seconds: Annotated[
        int,
        Meta(ge=5, le=600),
        "Seconds that clients should wait for a response to GET /events. The server sends"
        " heartbeats well before that.",
    ] = 90
    queue_idle_seconds: Annotated[
        int,
        Meta(ge=10, le=604800),
        "Seconds for which an event queue is kept while no client polls it.",
    ] = 600
    queues_per_user: Annotated[
        int, Meta(ge=1, le=100_000), "Maximum number of event queues of one account."
    ] = 100
    web_public_streams_enabled: Annotated[
        bool,
        "Allow organizations to have web-public channels. Each organization has its own setting,"
        " too.",
    ] = True
    agents: Annotated[
        bool,
        "Allow people to let agents (programs that use MCP, usually language models) act for"
        " them, at /mcp.",
    ] = True
    log_retention_days: Annotated[
        int,
        Meta(ge=8, le=36500),
        "Days for which the change log is kept. Event queues that are further behind have to"
        " register again. Messages and other data aren't affected.",
    ] = 30
    audit_log_retention_days: Annotated[
        int,
        Meta(ge=1, le=36500),
        "Days for which the audit log is kept, which shows owners who signed in, changed settings,"
        " and so on.",
    ] = 365
    smtp_host: Annotated[
        str,
        "Mail server that sends emails. Requires external_url, which links in emails lead to."
        " Empty: emails are written to the directory `mail` in the data directory.",
    ] = ""
    smtp_port: Annotated[
        int,
        Meta(ge=1, le=65535),
        "Port of the mail server: usually 587 for starttls, and 465 for tls.",
    ] = 587
    smtp_security: Annotated[
        str,
        Meta(pattern="^(starttls|tls|none)$"),
        "Encryption of the connection to the mail server: STARTTLS, TLS from the start, or none.",
    ] = "starttls"
    smtp_user: Annotated[str, "User name for the mail server. Empty: don't sign in."] = ""
    smtp_password: Annotated[str, SECRET, "Password for the mail server."] = ""
    mail_from: Annotated[
        str,
        _matching(
            r"^$|^[^\s@<>]+@[^\s@<>]+$|^[^\r\n<>]*<[^\s@<>]+@[^\s@<>]+>$",
            "an email address, such as chat@example.com or Chat <chat@example.com>",
        ),
        "Sender of emails, such as Chat <chat@example.com>. Empty: noreply@ and the host of"
        " external_url.",
    ] = ""
    mail_in_pattern: Annotated[
        str,
        _matching(
            r"^$|^[A-Za-z0-9._+-]*%s[A-Za-z0-9._+-]*@[A-Za-z0-9.-]+$",
            "an email address with %s in it, such as chat+%s@example.com",
        ),
        "Email addresses that receive messages, with %s for the part that differs, such as"
        " chat+%s@example.com. Your mail server delivers emails for them to mail_in_listen. Empty:"
        " incoming email is turned off.",
    ] = ""
    mail_in_listen: Annotated[
        str,
        PER_NODE,
        "Address that your mail server delivers incoming emails to: lmtp://127.0.0.1:2424, or the"
        " same with smtp://. Anyone who can connect can deliver emails, so allow only your mail"
        " server.",
    ] = ""
    mail_in_max_mib: Annotated[
        int, Meta(ge=1, le=200), "Maximum size of an incoming email, in MiB."
    ] = 25
    invitation_link_validity_minutes: Annotated[
        int, Meta(ge=1, le=52_704_000), "Default number of minutes until an invitation expires."
    ] = 14_400
    invitations_per_day: Annotated[
        int, Meta(ge=0, le=1_000_000), "Maximum number of invitations that are emailed in 24 hours."
    ] = 100
    password_min_length: Annotated[
        int, Meta(ge=1, le=100), "Minimum length of a new password, in characters."
    ] = 8
    password_min_guesses: Annotated[
        int,
        Meta(ge=0, le=10**15),
        "Minimum number of guesses to crack a new password, as estimated by zxcvbn. 0: reject"
        " only the person's email address and name, and the organization's name.",
    ] = 1_000_000
    breached_passwords_file: Annotated[
        str,
        "Path of a list of known passwords, which are rejected: that of Have I Been Pwned, ordered"
        " by hash (lines of SHA-1 and count). Empty: none.",
    ] = ""
    confirm_password_minutes: Annotated[
        int,
        Meta(ge=0, le=525_600),
        "Minutes after signing in until a browser has to confirm the password before it changes"
        " an email address, a key, or a role, or deactivates an account. 0: never.",
    ] = 15
    session_days: Annotated[
        int,
        Meta(ge=0, le=36_500),
        "Days until browsers have to sign in again, even if they're in use. 0: no limit. Browsers"
        " that aren't used have to sign in again after 30 days.",
    ] = 365
    hsts_seconds: Annotated[
        int,
        Meta(ge=0, le=63_072_000),
        "If external_url uses HTTPS, the number of seconds for which browsers use only HTTPS"
        " (Strict-Transport-Security). 0: don't send the header.",
    ] = 31_536_000
    rate_limits: Annotated[
        bool,
        "Limit the requests of one account and of one address, as set by the next three settings."
        " Always off with --dev.",
    ] = True
    requests_per_minute: Annotated[
        int,
        Meta(ge=1, le=10_000_000),
        "Requests that one account can make per minute, and in a burst. GET /events has its own"
        " limit, and files don't count.",
    ] = 1_000
    polls_per_minute: Annotated[
        int,
        Meta(ge=1, le=10_000_000),
        "GET /events requests that one account can make per minute, and in a burst.",
    ] = 10_000
    anonymous_requests_per_minute: Annotated[
        int,
        Meta(ge=1, le=10_000_000),
        "Requests without an account that one IPv4 address or IPv6 /64 network can make per"
        " minute, and in a burst.",
    ] = 600
    connections_per_address: Annotated[
        int,
        Meta(ge=0, le=1_000_000),
        PER_NODE,
        "Maximum number of connections from one IPv4 address or IPv6 /64 network, and never more"
        " than half of all connections. 0: no limit. Doesn't apply to this machine and to"
        " proxy_trusted, because many clients share a proxy's address.",
    ] = 1_000
    least_bytes_per_second: Annotated[
        int,
        Meta(ge=0, le=1_000_000),
        PER_NODE,
        "Disconnect clients that send a request body or receive a response more slowly than this"
        " many bytes per second. 0: disconnect only clients that transfer nothing at all.",
    ] = 1_024
    bigbluebutton_url: Annotated[
        str,
        _matching(r"^(https?://\S+)?$", "an http:// or https:// URL"),
        "Address of a BigBlueButton server that organizations can use for video calls, such as"
        " https://calls.example.com/bigbluebutton/. Empty: not available.",
    ] = ""
    bigbluebutton_secret: Annotated[
        str, SECRET, "Secret of the BigBlueButton server, as printed by `bbb-conf --secret`."
    ] = ""
    nextcloud_url: Annotated[
        str,
        _matching(r"^(https?://\S+)?$", "an http:// or https:// URL"),
        "Address of a Nextcloud server whose Talk app organizations can use for video calls, such"
        " as https://cloud.example.com. Empty: not available.",
    ] = ""
    nextcloud_user: Annotated[
        str, "Account on the Nextcloud server that creates conversations for calls."
    ] = ""
    nextcloud_password: Annotated[str, SECRET, "App password of that account."] = ""
    zoom_client_id: Annotated[
        str, "Client ID of an app in Zoom's marketplace, to offer Zoom for video calls."
    ] = ""
    zoom_client_secret: Annotated[str, SECRET, "Client secret of that app."] = ""
    zoom_account_id: Annotated[
        str,
        "Account ID of a server-to-server app at Zoom: all meetings are created in this account."
        " Empty: people connect their own accounts.",
    ] = ""
    zoom_url: Annotated[
        str,
        _matching(r"^https?://\S+$", "an http:// or https:// URL"),
        "Zoom's sign-in page.",
    ] = "https://zoom.us"
    zoom_api_url: Annotated[
        str, _matching(r"^https?://\S+$", "an http:// or https:// URL"), "Zoom's API."
    ] = "https://api.zoom.us"
    calls_url: Annotated[
        str,
        _matching(r"^(https?://\S*\{room\}\S*)?$", "an http:// or https:// URL with {room}"),
        "Address of calls on your own server, with {room} and, as needed, {token}, {name}, and"
        " {muted} (true for voice calls), such as https://meet.example.com/{room}?jwt={token}."
        " Empty: not available.",
    ] = ""
    calls_token: Annotated[
        str,
        _matching("^(|jitsi|livekit)$", "jitsi, livekit, or empty"),
        "What {token} in calls_url is: a token for Jitsi Meet or for LiveKit, signed with"
        " calls_secret. Empty: no token.",
    ] = ""
    calls_key: Annotated[str, "Jitsi's app ID, or LiveKit's API key: the token's issuer."] = ""
    calls_secret: Annotated[str, SECRET, "Jitsi's app secret, or LiveKit's API secret."] = ""
    llm_url: Annotated[
        str,
        _matching(r"^(https?://\S+)?$", "an http:// or https:// URL"),
        "Address of an OpenAI-compatible API for summaries of conversations, such as"
        " http://127.0.0.1:11434/v1 for Ollama. The messages that people have summarized are sent"
        " there. Empty: no summaries.",
    ] = ""
    llm_model: Annotated[str, "The language model's name there."] = ""
    llm_api_key: Annotated[str, SECRET, "API key for llm_url, if it needs one."] = ""
    llm_summaries_per_day: Annotated[
        int, Meta(ge=1, le=100_000), "Summaries that one person can get per day."
    ] = 50
    giphy_api_key: Annotated[
        str,
        _matching(r"^[\w-]{0,200}$", "an API key of letters, digits, _, and -"),
        "GIPHY API key for the GIF picker. Clients get the key and contact GIPHY directly. Empty:"
        " GIPHY isn't used.",
    ] = ""
    klipy_api_key: Annotated[
        str,
        _matching(r"^[\w-]{0,200}$", "an API key of letters, digits, _, and -"),
        "KLIPY API key for the GIF picker. If both keys are set, the web client uses GIPHY.",
    ] = ""
    jwt_secret: Annotated[
        str,
        _matching("^(|.{32,})$", "empty or at least 32 characters long"),
        SECRET,
        "Secret, of at least 32 characters, with which another program signs people in with JSON"
        " web tokens (POST /jwt/fetch_api_key). Empty: turned off.",
    ] = ""
    support_contact: Annotated[
        str,
        _matching(r"^[^\x00-\x1f\x7f<>]{0,200}$", "one line of up to 200 characters"),
        "Whom people can ask if they can't sign in: an email address, an http:// or https:// URL,"
        " or words, such as a phone number. Shown on sign-in pages, and in apps' sign-in errors."
        " Empty: not shown.",
    ] = ""
    sign_in: Annotated[
        tuple[SignInMethod, ...],
        SECRET,
        "Ways to sign in besides passwords: any number of tables [[sign_in]] in tertulia.toml, or a"
        " list of objects as JSON. docs/signing-in.md describes them.",
    ] = ()
    scim_token: Annotated[
        str,
        SECRET,
        _matching(r"^(\S{32,})?$", "empty or at least 32 characters without spaces"),
        "Token with which your company's directory creates, changes, and deactivates accounts and"
        " groups at /scim/v2. Empty: turned off.",
    ] = ""
    scim_method: Annotated[
        str,
        _matching(r"^([a-z0-9-]{1,40})?$", "the name of a sign-in method, or empty"),
        "Name of the sign-in method whose IDs the directory sends as externalId, so that people are"
        " recognized by them when they sign in. Empty: the IDs are the directory's own.",
    ] = ""
    moving_from_url: Annotated[
        str,
        _matching(r"^(https?://\S+)?$", "an http:// or https:// URL"),
        "Address of the Zulip server that the organization was imported from, such as"
        " https://old.example.com. Until an imported account has used its password and API key"
        " here, this server checks them there. Empty: not checked. Empty it when the old server is"
        " turned off.",
    ] = ""
    proxy_trusted: Annotated[
        str,
        PER_NODE,
        "Addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto headers are"
        " trusted, separated by commas.",
    ] = "127.0.0.1"
    node_name: Annotated[
        str,
        _matching(r"^[^\s/]{0,60}$", "up to 60 characters without spaces and slashes"),
        PER_NODE,
        "Name of this node in `tertulia nodes` and in metrics. Empty: the machine's name.",
    ] = ""
    outgoing_webhooks: Annotated[
        bool,
        "Allow outgoing webhook bots, whose URL this server calls when someone sends them a"
        " message.",
    ] = True
    outgoing_webhook_networks: Annotated[
        str,
        "Additional addresses and networks that outgoing webhooks and feeds can use although they"
        " aren't on the internet, separated by commas, such as 127.0.0.1, 10.1.0.0/16.",
    ] = ""
    embedded_bots: Annotated[
        str,
        "Bots of the zulip_bots package that people can run on this server, each in a separate"
        " process: names separated by commas, or all. Requires the extra `bots`."
        " Empty: none.",
    ] = ""
    web_push: Annotated[
        bool,
        "Send push notifications to phones and closed browsers with Web Push, through the push"
        " services of browsers or of people's choice.",
    ] = True
    web_push_networks: Annotated[
        str,
        "Networks of push services that aren't on the internet, separated by commas. Endpoints"
        " there that name an IP address can be used without TLS.",
    ] = ""
    push_bouncer_url: Annotated[
        str,
        _matching(r"^(https?://\S+)?$", "an http:// or https:// URL"),
        "Address of a push bouncer, which forwards encrypted push notifications to Zulip's mobile"
        " apps through Apple and Google, such as https://push.example.com. Empty: the apps get no"
        " push notifications.",
    ] = ""
    push_bouncer_id: Annotated[str, "ID of this server at the push bouncer."] = ""
    push_bouncer_key: Annotated[str, SECRET, "Key of this server at the push bouncer."] = ""
    feed_minutes: Annotated[
        int,
        Meta(ge=0, le=10_080),
        "Minutes between reads of the RSS and Atom feeds that bots follow. 0: feeds are turned"
        " off.",
    ] = 15
    metrics_allowed: Annotated[
        str,
        PER_NODE,
        "Addresses and networks that can read /metrics in addition to this machine, separated by"
        " commas.",
    ] = ""
