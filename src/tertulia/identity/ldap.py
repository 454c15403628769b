"""People in an LDAP directory, such as OpenLDAP or Active Directory."""

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from tertulia.model.errors import Unavailable
from tertulia.model.identities import ProvenIdentity
from tertulia.service.config import Config
from tertulia.service.directory_methods import LdapMethod
from tertulia.store import authorities

if TYPE_CHECKING:
    import ldap3

logger = logging.getLogger("tertulia.sign_in")

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 10
"""Timeout for one response of the directory."""
MAX_CONCURRENT: Final = 4
"""Concurrent sign-ins that query the directory."""
WAIT_SECONDS: Final = 15.0
"""How long other sign-ins wait for their turn."""
MAX_PICTURE: Final = 1024 * 1024
"""Largest picture, in bytes. Larger ones are ignored."""
_MAX_LOGIN: Final = 254
_PAGE: Final = 500
"""Entries in one response."""
_DISABLED: Final = 2
"""The bit of `userAccountControl` in Active Directory."""
_STATES: Final = ("userAccountControl", "accountExpires", "nsAccountLock", "modifyTimestamp")
"""The attributes that say whether an account can be used, in Active Directory, FreeIPA, and 389
Directory Server, and when the entry changed."""
_FILETIME_EPOCH: Final = 11_644_473_600
"""UNIX time 0 in seconds of Active Directory's time, which starts in 1601."""
_WRONG_PASSWORD: Final = frozenset({19, 49, 53})
"""Results of a bind that count as a wrong password: a lockout, wrong credentials, and "unwilling to
perform", for example because the password has expired."""


class DirectoryDown(Unavailable):
    """The directory doesn't respond, or responds with an error."""

    def __init__(self, method: LdapMethod, reason: str) -> None:
        super().__init__(
            f"{method.label} isn't responding, so your password can't be checked. Try again in a"
            " few minutes."
        )
        self.reason = reason


class LdapPerson(Struct, frozen=True, kw_only=True):
    """A person's entry."""

    identity: ProvenIdentity
    dn: str
    """The entry's distinguished name."""
    is_active: bool
    changed_at: str = ""
    """When the entry changed, in the directory's format; may be empty."""
    picture: bytes = b""
    """The person's picture, only after they signed in."""


class Directories:
    """The configured directories."""

    def __init__(self, config: Config) -> None:
        self.methods = tuple(method for method in config.sign_in if isinstance(method, LdapMethod))
        self._free = asyncio.Semaphore(MAX_CONCURRENT)

    async def signed_in(self, login: str, password: str) -> tuple[LdapMethod, LdapPerson] | None:
        """Return the person with this name or address and password, from the first directory that
        has them; None if there is no match. Raises Unavailable if a directory can't be queried."""
        if not (login.strip() and password) or len(login) > _MAX_LOGIN:
            return None
        for method in self.methods:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._free.acquire()
            except TimeoutError:
                raise DirectoryDown(method, "too many people are waiting") from None
            try:
                person = await asyncio.to_thread(signed_in, method, login.strip(), password)
            except DirectoryDown as error:
                fields = {"method": method.name, "reason": error.reason}
                logger.warning("the directory can't be asked", extra={"fields": fields})
                raise
            finally:
                self._free.release()
            if person is not None:
                return method, person
        return None


def signed_in(method: LdapMethod, login: str, password: str) -> LdapPerson | None:
    """Return the person if the password is theirs, else None. Blocks. Raises DirectoryDown."""
    from ldap3.utils.conv import escape_filter_chars

    with _opened(method) as connection:
        condition = method.login.replace("{login}", escape_filter_chars(login))
        entries = list(_entries(connection, method, f"(&{method.people}{condition})"))
        if len(entries) != 1:
            if entries:
                fields = {"method": method.name, "entries": len(entries)}
                logger.warning("a name isn't unique in the directory", extra={"fields": fields})
            return None
        (entry,) = entries
        # Directories accept a bind without a password for every name.
        if not password or not _is_password(method, entry["dn"], password):
            return None
        person = _person(connection, method, entry)
        return person if person is not None and person.is_active else None


def people(method: LdapMethod) -> list[LdapPerson]:
    """Return all people in the directory. Blocks. Raises DirectoryDown."""
    with _opened(method) as connection:
        result = (
            _person(connection, method, entry, with_picture=False)
            for entry in _entries(connection, method, method.people, with_picture=False)
        )
        return [person for person in result if person is not None]


def pictures(method: LdapMethod, dns: Sequence[str]) -> list[bytes]:
    """Return the picture of each of these people, empty if they have none. Blocks. Raises
    DirectoryDown."""
    with _opened(method) as connection:
        return [_picture(connection, method, dn) for dn in dns]


def _picture(connection: "ldap3.Connection", method: LdapMethod, dn: str) -> bytes:
    import ldap3

    name = method.picture_attribute
    if not connection.search(dn, "(objectClass=*)", ldap3.BASE, attributes=[name]):
        return b""  # The person was deleted in the meantime.
    raw = {key.lower(): values for key, values in connection.response[0]["raw_attributes"].items()}
    return _usable_picture(_first(raw, name))


def check(method: LdapMethod) -> str:
    """Query the directory, and return a short summary of the result. Blocks. Raises
    DirectoryDown."""
    with _opened(method) as connection:
        first = next(_entries(connection, method, method.people, with_picture=False), None)
    if first is None:
        raise DirectoryDown(method, f"{method.base} has nobody who matches {method.people}")
    return "it answers, and has people"


@contextmanager
def _opened(method: LdapMethod) -> "Iterator[ldap3.Connection]":
    """Yield a connection that can search."""
    from ldap3.core.exceptions import LDAPException

    try:
        connection = _connection(method, method.bind_dn, method.password())
        try:
            if not connection.bind():
                raise DirectoryDown(method, f"bind_dn: {connection.result['description']}")
            yield connection
        finally:
            connection.unbind()
    except (LDAPException, OSError, ValueError) as error:
        raise DirectoryDown(method, f"{method.url}: {error}") from None


def _connection(method: LdapMethod, name: str, password: str) -> "ldap3.Connection":
    """Return an open, encrypted connection that isn't bound yet."""
    import ldap3
    from ldap3.core.tls import Tls

    class Verified(Tls):  # type: ignore[misc]  # It has no types.
        """TLS with this server's own trust settings."""

        def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
            connection.socket = authorities.client_context().wrap_socket(
                connection.socket,
                server_hostname=connection.server.host,
                do_handshake_on_connect=do_handshake,
            )

    parts = urlsplit(method.url)
    is_secure = parts.scheme == "ldaps"
    server = ldap3.Server(
        parts.hostname,
        port=parts.port or (636 if is_secure else 389),
        use_ssl=is_secure,
        tls=Verified(),
        get_info=ldap3.NONE,
        connect_timeout=CONNECT_SECONDS,
    )
    connection = ldap3.Connection(
        server,
        user=name or None,
        password=password or None,
        read_only=True,
        receive_timeout=ANSWER_SECONDS,
        # A referral would send the password to another server.
        auto_referrals=False,
        check_names=False,
        raise_exceptions=False,
    )
    try:
        connection.open()
        if not is_secure and method.start_tls and not connection.start_tls():
            raise DirectoryDown(method, f"STARTTLS: {connection.result['description']}")
    except BaseException:
        if connection.socket is not None:
            connection.socket.close()
        raise
    return connection


def _is_password(method: LdapMethod, dn: str, password: str) -> bool:
    connection = _connection(method, dn, password)
    try:
        if connection.bind():
            return True
        result = connection.result
        if result["result"] in _WRONG_PASSWORD:
            return False
        raise DirectoryDown(method, f"a person's bind: {result['description']}")
    finally:
        connection.unbind()


def _entries(
    connection: "ldap3.Connection", method: LdapMethod, condition: str, *, with_picture: bool = True
) -> Iterator[Mapping[str, Any]]:
    wanted = [
        method.id_attribute,
        method.address_attribute,
        method.name_attribute,
        method.groups_attribute,
        *_STATES,
    ]
    if with_picture and method.picture_attribute:
        wanted.append(method.picture_attribute)
    return _searched(connection, method, method.base, condition, wanted)


def _searched(
    connection: "ldap3.Connection",
    method: LdapMethod,
    base: str,
    condition: str,
    wanted: list[str],
) -> Iterator[Mapping[str, Any]]:
    result = connection.extend.standard.paged_search(
        base, condition, attributes=wanted, paged_size=_PAGE, generator=True
    )
    for value in result:
        if value["type"] == "searchResEntry":
            raw = {name.lower(): values for name, values in value["raw_attributes"].items()}
            yield {"dn": value["dn"], "raw": raw}
    if connection.result["result"] != 0:
        raise DirectoryDown(method, f"search: {connection.result['description']}")


def _person(
    connection: "ldap3.Connection",
    method: LdapMethod,
    entry: Mapping[str, Any],
    *,
    with_picture: bool = True,
) -> LdapPerson | None:
    """Return the person, or None for an entry without an ID."""
    raw = entry["raw"]
    known_by = _first(raw, method.id_attribute)
    if not known_by:
        return None
    return LdapPerson(
        identity=ProvenIdentity(
            method=method.name,
            subject=_id_text(method.id_attribute, known_by),
            address=_text(_first(raw, method.address_attribute)),
            # The operator controls the directory, so its addresses are trusted.
            is_address_verified=True,
            full_name=_text(_first(raw, method.name_attribute)),
            groups=_groups(connection, method, entry),
        ),
        dn=entry["dn"],
        is_active=_is_enabled(raw),
        changed_at=_text(_first(raw, "modifyTimestamp")),
        picture=_usable_picture(_first(raw, method.picture_attribute)) if with_picture else b"",
    )


def _is_enabled(raw: Mapping[str, list[bytes]]) -> bool:
    """Whether the account isn't disabled, and hasn't expired."""
    control, ends, locked = (_text(_first(raw, name)) for name in _STATES[:3])
    if control.isdigit() and int(control) & _DISABLED:
        return False
    ends_at = int(ends) / 1e7 - _FILETIME_EPOCH if ends.isdigit() and int(ends) else math.inf
    return ends_at > time.time() and locked.lower() != "true"


def _usable_picture(picture: bytes) -> bytes:
    return picture if len(picture) <= MAX_PICTURE else b""


def _groups(
    connection: "ldap3.Connection", method: LdapMethod, entry: Mapping[str, Any]
) -> frozenset[str]:
    """Return the person's groups that matter here, by distinguished name and by the name in it."""
    matter = {*method.roles.values(), *method.groups.values()}
    if not matter:
        return frozenset()
    names = [_text(value) for value in entry["raw"].get(method.groups_attribute.lower(), ())]
    if method.group_base:
        from ldap3.utils.conv import escape_filter_chars

        condition = method.group_filter.replace("{dn}", escape_filter_chars(entry["dn"]))
        result = _searched(connection, method, method.group_base, condition, ["cn"])
        names += [fields["dn"] for fields in result]
    return frozenset(matter & {*names, *map(_own_name, names)})


def _own_name(dn: str) -> str:
    """Return the first name in a distinguished name: `staff` for
    `cn=staff,ou=groups,dc=example`."""
    from ldap3.core.exceptions import LDAPException
    from ldap3.utils.dn import parse_dn

    try:
        return str(parse_dn(dn)[0][1])
    except (LDAPException, IndexError):
        return dn


def _first(raw: Mapping[str, list[bytes]], name: str) -> bytes:
    values = raw.get(name.lower()) or [b""]
    return values[0]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip()


def _id_text(attribute: str, value: bytes) -> str:
    if attribute.lower() == "objectguid" and len(value) == 16:
        return str(uuid.UUID(bytes_le=value))
    return _text(value)
