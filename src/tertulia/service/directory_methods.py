"""Sign-in methods that use a company's reverse proxy or LDAP directory."""

import importlib.util
from typing import Annotated

from msgspec import Meta

from tertulia.service.sign_in_methods import NEEDED, SignInMethod, file_text, require_file

_HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")]
_Filter = Annotated[str, Meta(pattern=r"^\(.*\)$")]


class HeaderMethod(SignInMethod, kw_only=True, frozen=True, tag="header"):
    """A reverse proxy that signs people in and names them in headers, such as Authelia, Authentik,
    or oauth2-proxy. Only proxies in `proxy_trusted` are believed."""

    NEEDS_URL = False

    user_header: _HeaderName = "Remote-User"
    """The header with the proxy's permanent ID of the person."""
    address_header: _HeaderName = "Remote-Email"
    name_header: _HeaderName = "Remote-Name"
    groups_header: _HeaderName = "Remote-Groups"
    groups_separator: Annotated[str, Meta(min_length=1, max_length=1)] = ","


class LdapMethod(SignInMethod, kw_only=True, frozen=True, tag="ldap"):
    """An LDAP directory, such as OpenLDAP or Active Directory. People enter their name or address
    and their directory password in the ordinary sign-in form."""

    NEEDS_URL = False
    HAS_BUTTON = False
    TAKES_PASSWORDS = True

    url: Annotated[str, Meta(pattern=r"^ldaps?://[^\s/?#]+/?$")]
    """`ldaps://…`, or `ldap://…` with STARTTLS."""
    start_tls: bool = True
    """Whether ldap:// connections are encrypted with STARTTLS. Without it, passwords can be read on
    the network."""
    bind_dn: str = ""
    """The name that the server binds with to search; empty for anonymous searches."""
    bind_password: str = ""
    bind_password_file: str = ""
    base: NEEDED
    """The distinguished name below which people are searched."""
    people: _Filter = "(objectClass=person)"
    """The filter for entries of people who can sign in."""
    login: _Filter = "(|(mail={login})(uid={login})(sAMAccountName={login}))"
    """The filter that finds the person's entry for `{login}`, the name that they entered."""
    id_attribute: NEEDED = "entryUUID"
    """The attribute with a permanent ID; in Active Directory, objectGUID."""
    address_attribute: NEEDED = "mail"
    name_attribute: NEEDED = "cn"
    groups_attribute: NEEDED = "memberOf"
    group_base: str = ""
    """The distinguished name below which groups are searched, if people's entries don't list
    them."""
    group_filter: _Filter = "(member={dn})"
    picture_attribute: str = "jpegPhoto"
    """The attribute with the picture; empty for none. In Active Directory, thumbnailPhoto."""
    sync_minutes: Annotated[int, Meta(ge=0, le=10_080)] = 60
    """The interval in minutes between checks for people who were removed and must be deactivated; 0
    for never."""

    def password(self) -> str:
        """Return the password of `bind_dn`. Raise OSError."""
        return file_text(self.bind_password_file) or self.bind_password

    def check(self) -> None:
        if self.bind_password and self.bind_password_file:
            raise ValueError("bind_password: bind_password_file is set, too; keep one of them")
        require_file("bind_password_file", self.bind_password_file)
        if self.bind_dn and not self.password():
            raise ValueError("bind_password is missing")
        if "{login}" not in self.login:
            raise ValueError("login: it must contain {login}")
        if self.group_base and "{dn}" not in self.group_filter:
            raise ValueError("group_filter: it must contain {dn}")
        if importlib.util.find_spec("ldap3") is None:
            raise ValueError("kind ldap requires the extra `ldap`, which isn't installed")
