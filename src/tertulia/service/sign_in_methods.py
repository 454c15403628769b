"""Declarations of the ways to sign in besides passwords: the tables `[[sign_in]]` of the settings
file, or JSON in `TERTULIA_SIGN_IN`."""

import importlib.util
import json
import re
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from tertulia.model.identities import RecognitionRules
from tertulia.model.users import Role

_URL = Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+[^\s?#]*$")]
_HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")]
_Filter = Annotated[str, Meta(pattern=r"^\(.*\)$")]
_NEEDED = Annotated[str, Meta(min_length=1)]
_RoleName = Literal["owner", "administrator", "moderator", "member", "guest"]
_MAX_SECRET_BYTES: Final = 64 * 1024
_MAX_ICON_BYTES: Final = 64 * 1024
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class SignInMethod(Struct, kw_only=True, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """A way to sign in. Subclasses are the kinds."""

    NEEDS_URL: ClassVar[bool] = True
    """Whether people come back from elsewhere, so that `external_url` must be set."""
    HAS_BUTTON: ClassVar[bool] = True
    """Whether the sign-in page has a button for it, which leads to `/sign-in/NAME`."""
    IS_REDIRECTING: ClassVar[bool] = False
    """Whether people are sent to a provider that sends them back with a code."""
    HAS_LOGOUT: ClassVar[bool] = False
    """Whether people can sign out at the provider, too."""
    TITLE: ClassVar[str] = ""
    """The title if none is configured."""

    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,29}$")]
    """In addresses. Accounts are linked under it."""
    title: str = ""
    """On the button; empty for the kind's, or the name."""
    icon_file: str = ""
    """A PNG image for the button, which apps show, too; empty for none."""
    accounts: Literal["create", "match"] = "create"
    """Whether people without an account get one."""
    roles: dict[_RoleName, _NEEDED] = {}
    """The value, at the provider, that gives each role."""
    groups: dict[str, _NEEDED] = {}
    """The value, at the provider, that makes people members of each group."""

    @property
    def kind(self) -> str:
        """The kind, as in the settings."""
        return str(self.__struct_config__.tag)

    @property
    def label(self) -> str:
        """What people call it."""
        return self.title or self.TITLE or self.name

    @property
    def path(self) -> str:
        """Where signing in starts on this server."""
        return f"/sign-in/{self.name}"

    @property
    def icon_path(self) -> str | None:
        """Where this server serves the icon; None without one."""
        return f"{self.path}/icon.png" if self.icon_file else None

    def icon(self) -> bytes:
        """Read the icon. Raises ValueError if it can't be used."""
        try:
            with Path(self.icon_file).open("rb") as file:
                content = file.read(_MAX_ICON_BYTES + 1)
        except OSError as error:
            raise ValueError(f"icon_file: can't read {self.icon_file}: {error.strerror}") from None
        if not content.startswith(_PNG) or len(content) > _MAX_ICON_BYTES:
            raise ValueError(f"icon_file: {self.icon_file} isn't a PNG image of up to 64 KiB")
        return content

    @property
    def is_public(self) -> bool:
        """Whether anyone can have an account at the provider."""
        return False

    @property
    def provider(self) -> str:
        """Which provider people's IDs come from, if another one could be set up under the same
        name; otherwise empty."""
        return ""

    def subject(self, provider_id: str) -> str:
        """Return what an account is linked to, for the provider's ID of a person."""
        return f"{self.provider} {provider_id}" if self.provider else provider_id

    def provider_id(self, subject: str) -> str:
        """Return the provider's ID of a person, the reverse of `subject`."""
        return subject.removeprefix(f"{self.provider} ")

    @property
    def rules(self) -> RecognitionRules:
        """Who becomes a member, and with which roles and groups."""
        return RecognitionRules(
            title=self.label,
            creates=self.accounts == "create",
            is_public=self.is_public,
            roles={Role[name.upper()]: value for name, value in self.roles.items()},
            groups=self.groups,
        )

    def check(self) -> None:
        """Raise ValueError, with the rest of a sentence that begins with the key, for a mistake
        that the fields' types don't show."""


class _Client(SignInMethod, kw_only=True, frozen=True):
    """A provider at which this server is registered as a client."""

    IS_REDIRECTING = True
    HAS_LOGOUT = True

    client_id: _NEEDED
    client_secret: str = ""
    client_secret_file: str = ""

    def secret(self) -> str:
        """The client's secret; empty for a public client. Raises OSError."""
        return file_text(self.client_secret_file) or self.client_secret

    def check(self) -> None:
        if self.client_secret and self.client_secret_file:
            raise ValueError("client_secret: client_secret_file is set, too; keep one of them")
        _require_file("client_secret_file", self.client_secret_file)


class OidcMethod(_Client, kw_only=True, frozen=True, tag="oidc"):
    """Any OpenID Connect provider, by discovery."""

    issuer: _URL
    scopes: str = "openid email profile"
    groups_claim: str = "groups"
    """The claim that roles and groups are mapped from."""
    trust_addresses: bool = False
    """Whether addresses count as verified although the provider doesn't say so."""

    @property
    def provider(self) -> str:
        return self.issuer.rstrip("/")


class GoogleMethod(_Client, kw_only=True, frozen=True, tag="google"):
    """Google accounts."""

    TITLE = "Google"

    domain: str = ""
    """The Google Workspace domain whose members may sign in; empty for everyone."""

    @property
    def provider(self) -> str:
        return "https://accounts.google.com"

    @property
    def is_public(self) -> bool:
        return not self.domain


class GitlabMethod(_Client, kw_only=True, frozen=True, tag="gitlab"):
    """GitLab, by OpenID Connect."""

    TITLE = "GitLab"

    url: _URL = "https://gitlab.com"

    @property
    def provider(self) -> str:
        return self.url.rstrip("/")

    @property
    def is_public(self) -> bool:
        return urlsplit(self.url).hostname == "gitlab.com"


class GithubMethod(_Client, kw_only=True, frozen=True, tag="github"):
    """GitHub, or GitHub Enterprise Server."""

    TITLE = "GitHub"

    url: _URL = "https://github.com"
    organizations: tuple[str, ...] = ()
    """The GitHub organizations whose members may sign in; empty for everyone."""

    @property
    def provider(self) -> str:
        return self.url.rstrip("/")

    @property
    def is_public(self) -> bool:
        return not self.organizations and urlsplit(self.url).hostname == "github.com"

    @property
    def asks_for_teams(self) -> bool:
        """Whether people's organizations and teams matter."""
        return bool(self.organizations or self.roles or self.groups)


class AppleMethod(SignInMethod, kw_only=True, frozen=True, tag="apple"):
    """Apple accounts. The client's secret is a token that is signed with a key from Apple."""

    IS_REDIRECTING = True
    HAS_LOGOUT = True
    TITLE = "Apple"

    client_id: _NEEDED
    """The Services ID."""
    team_id: _NEEDED
    key_id: _NEEDED
    key_file: _NEEDED
    """The private key that Apple gave out for the key ID (`AuthKey_….p8`)."""

    @property
    def provider(self) -> str:
        return "https://appleid.apple.com"

    @property
    def is_public(self) -> bool:
        return True

    def check(self) -> None:
        _require_file("key_file", self.key_file)


class HeaderMethod(SignInMethod, kw_only=True, frozen=True, tag="header"):
    """A reverse proxy that signs people in and names them in headers: Authelia, Authentik,
    oauth2-proxy. Only proxies in `proxy_trusted` are believed."""

    NEEDS_URL = False

    user_header: _HeaderName = "Remote-User"
    """The proxy's own, permanent ID of the person."""
    address_header: _HeaderName = "Remote-Email"
    name_header: _HeaderName = "Remote-Name"
    groups_header: _HeaderName = "Remote-Groups"
    groups_separator: Annotated[str, Meta(min_length=1, max_length=1)] = ","


class SamlMethod(SignInMethod, kw_only=True, frozen=True, tag="saml"):
    """An identity provider that speaks SAML 2."""

    HAS_LOGOUT = True

    metadata_url: Annotated[str, Meta(pattern=r"^(https://[^\s/?#]+[^\s#]*)?$")] = ""
    """Where the provider publishes its metadata. It says whose signatures count, so it's only read
    over HTTPS."""
    metadata_file: str = ""
    """The provider's metadata as a file, instead."""
    key_file: str = ""
    """This server's private key: requests are signed with it, and assertions can be encrypted."""
    certificate_file: str = ""
    """The certificate that the provider knows the key by."""
    issuer: str = ""
    """The provider's entity ID, if the metadata describes several."""
    provider_starts: bool = False
    """Whether people can also start at the provider's page of apps. Nothing shows then that this
    browser asked for it."""
    id_attribute: str = ""
    """The attribute with a permanent ID; empty for the NameID."""
    address_attribute: str = ""
    """Attributes; if empty or missing, the usual names are tried."""
    name_attribute: str = ""
    groups_attribute: str = ""

    def check(self) -> None:
        if bool(self.metadata_url) == bool(self.metadata_file):
            raise ValueError("metadata_url or metadata_file is needed, and not both")
        _require_file("metadata_file", self.metadata_file)
        if bool(self.key_file) != bool(self.certificate_file):
            raise ValueError("key_file and certificate_file belong together")
        _require_file("key_file", self.key_file)
        _require_file("certificate_file", self.certificate_file)
        if importlib.util.find_spec("onelogin") is None:
            raise ValueError("kind saml requires the extra `saml`, which isn't installed")


class LdapMethod(SignInMethod, kw_only=True, frozen=True, tag="ldap"):
    """An LDAP directory, such as OpenLDAP or Active Directory. People type their name or address
    and their password there into the ordinary sign-in form."""

    NEEDS_URL = False
    HAS_BUTTON = False

    url: Annotated[str, Meta(pattern=r"^ldaps?://[^\s/?#]+/?$")]
    """`ldaps://…`, or `ldap://…` with STARTTLS."""
    start_tls: bool = True
    """Whether ldap:// connections are encrypted by STARTTLS. Otherwise passwords can be read on
    the network."""
    bind_dn: str = ""
    """The name that searches; empty for anonymous searches."""
    bind_password: str = ""
    bind_password_file: str = ""
    base: _NEEDED
    """The distinguished name below which people are."""
    people: _Filter = "(objectClass=person)"
    """Which entries are people who may sign in."""
    login: _Filter = "(|(mail={login})(uid={login})(sAMAccountName={login}))"
    """Whose entry `{login}`, which someone typed, stands for."""
    id_attribute: _NEEDED = "entryUUID"
    """A permanent ID; in Active Directory, objectGUID."""
    address_attribute: _NEEDED = "mail"
    name_attribute: _NEEDED = "cn"
    groups_attribute: _NEEDED = "memberOf"
    group_base: str = ""
    """Where groups are searched, if people's entries don't have them."""
    group_filter: _Filter = "(member={dn})"
    picture_attribute: str = "jpegPhoto"
    """In Active Directory, thumbnailPhoto; empty for none."""
    sync_minutes: Annotated[int, Meta(ge=0, le=10_080)] = 60
    """How often people who are gone are deactivated; 0 for never."""

    def password(self) -> str:
        """The password of `bind_dn`. Raises OSError."""
        return file_text(self.bind_password_file) or self.bind_password

    def check(self) -> None:
        if self.bind_password and self.bind_password_file:
            raise ValueError("bind_password: bind_password_file is set, too; keep one of them")
        _require_file("bind_password_file", self.bind_password_file)
        if self.bind_dn and not self.password():
            raise ValueError("bind_password is missing")
        if "{login}" not in self.login:
            raise ValueError("login: it must contain {login}")
        if self.group_base and "{dn}" not in self.group_filter:
            raise ValueError("group_filter: it must contain {dn}")
        if importlib.util.find_spec("ldap3") is None:
            raise ValueError("kind ldap requires the extra `ldap`, which isn't installed")


RESERVED: Final = frozenset({"code", "link", "passkey", "password", "scim", "token"})
"""Names of other ways to sign in, in logs and sessions."""

AnySignInMethod = (
    OidcMethod
    | GoogleMethod
    | GitlabMethod
    | GithubMethod
    | AppleMethod
    | HeaderMethod
    | LdapMethod
    | SamlMethod
)

KINDS: Final[Mapping[str, type[SignInMethod]]] = {
    str(kind.__struct_config__.tag): kind for kind in typing.get_args(AnySignInMethod)
}


def file_text(path: str) -> str:
    """The content of a file with a secret, without the line end; empty for an empty path. Raises
    OSError, and ValueError if it isn't text."""
    if not path:
        return ""
    with Path(path).open("rb") as file:
        return file.read(_MAX_SECRET_BYTES).decode().strip()


def _require_file(key: str, path: str) -> None:
    try:
        text = file_text(path)
    except OSError as error:
        raise ValueError(f"{key}: can't read {path}: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{key}: {path} isn't a text file") from None
    if path and not text:
        raise ValueError(f"{key}: {path} is empty")


_PLACE: Final = re.compile(r" - at `(key` in `)?\$\.?([^`]*)`$")


def methods_from(value: Any) -> tuple[AnySignInMethod, ...]:
    """Return the methods from TOML tables, or from their JSON. Raises ValueError with a sentence
    that names the wrong key."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"sign_in: it isn't valid JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("sign_in: it must be a list of tables, each beginning with [[sign_in]]")
    methods = tuple(_method(number, table) for number, table in enumerate(value, 1))
    names = [method.name for method in methods]
    for name in names:
        if name in RESERVED:
            raise ValueError(f"sign_in ({name}): name can't be {_either(sorted(RESERVED))}")
        if names.count(name) > 1:
            raise ValueError(f"sign_in: two methods have the name '{name}'")
    return methods


def _method(number: int, table: dict[str, Any]) -> AnySignInMethod:
    name = table.get("name")
    which = f"sign_in ({name})" if isinstance(name, str) and name else f"sign_in (table {number})"
    kind = KINDS.get(str(table.get("kind")))
    if kind is None:
        raise ValueError(f"{which}: kind must be {_either(KINDS)}")
    try:
        method: Any = msgspec.convert(table, kind)
        method.check()
        if method.icon_file:
            method.icon()
    except msgspec.ValidationError as error:
        raise ValueError(f"{which}: {_reason(kind, str(error))}") from None
    except ValueError as error:
        raise ValueError(f"{which}: {error}") from None
    checked: AnySignInMethod = method
    return checked


def _reason(kind: type[SignInMethod], error: str) -> str:
    """Return msgspec's message, beginning with the key."""
    message = _PLACE.sub("", error)
    place = _PLACE.search(error)
    key = place[2].partition("[")[0] if place is not None else ""
    if missing := re.search(r"missing required field `(\w+)`", message):
        return f"{missing[1]} is missing"
    if unknown := re.search(r"unknown field `([^`]+)`", message):
        known = (field.name for field in msgspec.structs.fields(kind))
        tag = kind.__struct_config__.tag
        return f"{unknown[1]} isn't a setting of kind {tag}, which has {', '.join(known)}"
    if key == "name":
        return "name must be up to 30 characters of a-z, 0-9, and -"
    if key == "accounts":
        return "accounts must be create or match"
    if key == "roles" and place is not None and place[1]:
        return f"roles: its keys must be {_either(typing.get_args(_RoleName))}"
    if "regex" in message and key.endswith("_header"):
        return f"{key} must be the name of a header"
    if "regex" in message and key == "metadata_url":
        return "metadata_url must be an HTTPS URL"
    if "regex" in message and kind is LdapMethod:
        shape = "ldaps://host or ldap://host" if key == "url" else "a filter in parentheses"
        return f"{key} must be {shape}"
    if "regex" in message:
        return f"{key} must be an http:// or https:// URL"
    if "length" in message:
        return f"{key} can't be empty"
    return f"{key}: {message[:1].lower()}{message[1:]}"


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)}, or {last}"
