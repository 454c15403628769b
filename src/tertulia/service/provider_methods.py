"""Sign-in methods that redirect people to an identity provider."""

import importlib.util
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from tertulia.service.sign_in_methods import NEEDED, SignInMethod, file_text, require_file

_URL = Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+[^\s?#]*$")]


class _Client(SignInMethod, kw_only=True, frozen=True):
    """A provider that this server is registered at as a client."""

    IS_REDIRECTING = True

    client_id: NEEDED
    client_secret: str = ""
    client_secret_file: str = ""

    def secret(self) -> str:
        """Return the client's secret; empty for a public client. Raise OSError."""
        return file_text(self.client_secret_file) or self.client_secret

    def check(self) -> None:
        if self.client_secret and self.client_secret_file:
            raise ValueError("client_secret: client_secret_file is set, too; keep one of them")
        require_file("client_secret_file", self.client_secret_file)


class OidcMethod(_Client, kw_only=True, frozen=True, tag="oidc"):
    """Any OpenID Connect provider, found through discovery."""

    HAS_LOGOUT = True

    issuer: _URL
    scopes: str = "openid email profile"
    groups_claim: str = "groups"
    """The claim that roles and groups are mapped from."""
    trust_addresses: bool = False
    """Whether addresses count as verified even if the provider doesn't say so."""

    @property
    def provider(self) -> str:
        return self.issuer.rstrip("/")


class GoogleMethod(_Client, kw_only=True, frozen=True, tag="google"):
    """Google accounts."""

    HAS_GROUPS = False
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
    """GitLab, through OpenID Connect."""

    HAS_LOGOUT = True
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
        """Whether people's organizations and teams have to be requested."""
        return bool(self.organizations or self.roles or self.groups)


class AppleMethod(SignInMethod, kw_only=True, frozen=True, tag="apple"):
    """Apple accounts. The client's secret is a token that is signed with a key from Apple."""

    IS_REDIRECTING = True
    HAS_GROUPS = False
    TITLE = "Apple"

    client_id: NEEDED
    """The Services ID."""
    team_id: NEEDED
    key_id: NEEDED
    key_file: NEEDED
    """The file with Apple's private key for the key ID (`AuthKey_….p8`)."""

    @property
    def provider(self) -> str:
        return "https://appleid.apple.com"

    @property
    def is_public(self) -> bool:
        return True

    def check(self) -> None:
        require_file("key_file", self.key_file)


class SamlMethod(SignInMethod, kw_only=True, frozen=True, tag="saml"):
    """An identity provider that speaks SAML 2."""

    HAS_LOGOUT = True

    metadata_url: Annotated[str, Meta(pattern=r"^(https://[^\s/?#]+[^\s#]*)?$")] = ""
    """The URL of the provider's metadata. The metadata decides whose signatures count, so it's only
    read over HTTPS."""
    metadata_file: str = ""
    """A file with the provider's metadata, instead of a URL."""
    key_file: str = ""
    """The file with this server's private key, which signs requests and decrypts assertions."""
    certificate_file: str = ""
    """The file with the certificate by which the provider knows the key."""
    issuer: str = ""
    """The provider's entity ID, if the metadata describes several."""
    provider_starts: bool = False
    """Whether people can also start at the provider's app page. Then nothing shows that this
    browser asked to sign in."""
    id_attribute: str = ""
    """The attribute with a permanent ID; empty for the NameID."""
    address_attribute: str = ""
    """The attributes' names; if empty or missing, the usual names are tried."""
    name_attribute: str = ""
    groups_attribute: str = ""

    def check(self) -> None:
        if bool(self.metadata_url) == bool(self.metadata_file):
            raise ValueError("metadata_url or metadata_file is needed, and not both")
        require_file("metadata_file", self.metadata_file)
        if bool(self.key_file) != bool(self.certificate_file):
            raise ValueError("key_file and certificate_file belong together")
        require_file("key_file", self.key_file)
        require_file("certificate_file", self.certificate_file)
        if importlib.util.find_spec("onelogin") is None:
            raise ValueError("kind saml requires the extra `saml`, which isn't installed")
