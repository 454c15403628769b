"""A real LDAP directory: OpenLDAP's `slapd`, on this machine."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import free_port
from tests.tls import Authority

BASE = "dc=example,dc=com"
ROOT = f"cn=admin,{BASE}"
ROOT_PASSWORD = "admin-secret"
_SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/lib/openldap:/usr/local/sbin")
_CONFIG = """
include {schema}/core.schema
include {schema}/cosine.schema
include {schema}/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
{active_directory}
sizelimit size=1000 size.pr=1000
pidfile {place}/slapd.pid
TLSCertificateFile {place}/server.pem
TLSCertificateKeyFile {place}/server.key
{options}
database mdb
suffix "{base}"
rootdn "{root}"
rootpw {password}
directory {place}/data
overlay memberof
"""

_ACTIVE_DIRECTORY = """
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl'
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.159 NAME 'accountExpires'
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID' EQUALITY octetStringMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName' EQUALITY caseIgnoreMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.656 NAME 'userPrincipalName' EQUALITY caseIgnoreMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.35 NAME 'thumbnailPhoto'
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
objectclass ( 1.2.840.113556.1.5.9 NAME 'user' AUXILIARY MAY ( userAccountControl $
  accountExpires $ objectGUID $ sAMAccountName $ userPrincipalName $ thumbnailPhoto ) )
"""
"""Active Directory's attributes of people, for OpenLDAP."""


@dataclass(frozen=True)
class LdapServer:
    """A running directory with an empty tree."""

    url: str
    secure_url: str

    def table(self, **more: Any) -> dict[str, Any]:
        """Return the table `[[sign_in]]` for this directory."""
        return {
            "name": "company",
            "kind": "ldap",
            "title": "Company account",
            "url": self.secure_url,
            "bind_dn": ROOT,
            "bind_password": ROOT_PASSWORD,
            "base": f"ou=people,{BASE}",
            **more,
        }

    def change(self, do: str, *arguments: Any) -> None:
        """Call a method of ldap3's connection, such as `add`, as the administrator."""
        import ldap3

        connection = ldap3.Connection(self.url, ROOT, ROOT_PASSWORD, auto_bind=True)
        try:
            assert getattr(connection, do)(*arguments), connection.result
        finally:
            connection.unbind()

    def add_person(
        self, uid: str, *, unit: str = "people", classes: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Add a person, whose password is `uid`-secret, and return the distinguished name."""
        dn = f"uid={uid},ou={unit},{BASE}"
        name = uid.title()
        values = {
            "uid": uid,
            "cn": name,
            "sn": name,
            "mail": f"{uid}@example.com",
            "userPassword": f"{uid}-secret",
            **attributes,
        }
        self.change("add", dn, ["inetOrgPerson", *classes], values)
        return dn


@contextmanager
def ldap_server(authority: Authority, place: Path, options: str = "") -> Iterator[LdapServer]:
    """Run a directory with a certificate of the authority for this machine. Skips the test if it
    isn't installed."""
    pytest.importorskip("ldap3", reason="needs the extra ldap")
    if _SLAPD is None:
        pytest.skip("needs slapd (apt-get install slapd)")
    authority.server("localhost")
    (place / "data").mkdir()
    config = place / "slapd.conf"
    values = {"base": BASE, "root": ROOT, "password": ROOT_PASSWORD, "options": options}
    schema = {"schema": "/etc/ldap/schema", "active_directory": _ACTIVE_DIRECTORY}
    config.write_text(_CONFIG.format(place=place, **schema, **values))
    plain, secure = free_port(), free_port()
    urls = [f"ldap://127.0.0.1:{plain}", f"ldaps://localhost:{secure}"]
    process = subprocess.Popen(
        [_SLAPD, "-d", "0", "-h", f"{urls[0]} ldaps://127.0.0.1:{secure}", "-f", config],
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", secure), 1).close()
                break
            except OSError:
                assert process.poll() is None, "slapd refused its configuration"
                assert time.monotonic() < until, "slapd doesn't start"
                time.sleep(0.02)
        server = LdapServer(*urls)
        server.change("add", BASE, ["dcObject", "organization"], {"dc": "example", "o": "Example"})
        for unit in ("people", "groups", "staff"):
            server.change("add", f"ou={unit},{BASE}", ["organizationalUnit"], {"ou": unit})
        yield server
    finally:
        process.terminate()
        process.wait(60)
