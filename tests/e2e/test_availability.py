"""A server with a replicated PostgreSQL, or one that requires TLS."""

import datetime
import ipaddress
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cli.support import run
from tests.e2e.people import listening
from tests.e2e.senders import sending
from tests.e2e.server import Server, ended, free_port
from tests.postgres import Standalone, can_stand_alone, replica_of, standalone

SAID = {"type": "stream", "to": "general", "topic": "tea"}

pytestmark = pytest.mark.skipif(
    not can_stand_alone(), reason="there is no PostgreSQL on this machine"
)


@contextmanager
def primary() -> Iterator[Standalone]:
    with standalone() as database:
        assert database is not None
        yield database


def test_a_promoted_replica_has_every_acknowledged_message(tmp_path: Path) -> None:
    with primary() as first, replica_of(first) as second:
        first.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
        first.query("SELECT pg_reload_conf()")
        hosts = ",".join(quote(str(one.directory), safe="") for one in (first, second))
        url = f"postgresql://tertulia@/postgres?host={hosts}&target_session_attrs=read-write"
        server = Server(tmp_path / "data", url)
        ann, ben = server.create_organization(), server.add("ben")
        with ended(server):
            server.start()
            with (
                listening(server, ben, event_types=["message"]) as (heard,),
                sending(server, ("ann", ann, SAID)) as tally,
            ):
                tally.wait_for_more(20)
                first.crash()
                second.promote()
                last = tally.wait_for_more(20)
                heard.hears_message(last)
            # Acknowledged messages are stored once and in order. Others may be stored, too.
            known = set(tally.acknowledged)
            found = [one for one in heard.messages() if one in known]
            assert found == tally.acknowledged[: len(found)]
            assert found[-1][0] >= last
            assert heard.registrations == 1
        ((recovering,),) = second.query("SELECT pg_is_in_recovery()")
        assert recovering is False


def certificate(
    directory: Path,
    name: str,
    issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate with this name and its key, as files `name.crt` and `name.key`: of a
    certificate authority if no issuer is given, otherwise of 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(issuer[1] if issuer else key, hashes.SHA256())
    )
    (directory / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (directory / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made, key


def test_the_database_connection_uses_tls_if_the_url_says_so(
    tmp_path: Path,
) -> None:
    with primary() as database:
        database.kill()
        authority = certificate(tmp_path, "authority")
        certificate(tmp_path, "stranger")
        certificate(tmp_path, "database", authority)
        own = database.directory / "data"
        for kind in ("crt", "key"):
            place = own / f"server.{kind}"
            shutil.copy(tmp_path / f"database.{kind}", place)
            place.chmod(0o600)
            if database.user:
                shutil.chown(place, database.user)
        (own / "pg_hba.conf").write_text(
            "hostssl all all 127.0.0.1/32 trust\nlocal all all trust\n"
        )
        port = str(free_port())
        database.start(listen_addresses="127.0.0.1", port=port, ssl="on")

        def url(authority: str, mode: str = "verify-full") -> str:
            root = quote(str(tmp_path / f"{authority}.crt"), safe="")
            return (
                f"postgresql://tertulia@127.0.0.1:{port}/postgres?sslmode={mode}&sslrootcert={root}"
            )

        server = Server(tmp_path / "data", url("authority"))
        server.create_organization()
        with ended(server):
            server.start()
            with psycopg.connect(url("authority")) as connection:
                rows = connection.execute(
                    "SELECT ssl, count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                    " WHERE application_name LIKE 'tertulia%' GROUP BY ssl"
                ).fetchall()
            assert [is_encrypted for is_encrypted, _ in rows] == [True]
        for other in (url("stranger"), url("authority", "disable")):
            refused = run("check", "--data-dir", str(tmp_path / "data"), "--database-url", other)
            assert refused.exit_code != 0
            assert "Couldn't connect to PostgreSQL" in refused.output
