"""Certificates for servers on this machine."""

import datetime
import ipaddress
import ssl
from functools import lru_cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tertulia.store import authorities

_DAY = datetime.timedelta(days=1)


def write_certificate(directory: Path, name: str = "chat.test") -> tuple[Path, Path]:
    """Write a self-signed certificate for the name and this machine, and its key, replacing
    existing files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    files = directory / "cert.pem", directory / "key.pem"
    for file, content in zip(
        files,
        (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        ),
        strict=True,
    ):
        made = file.with_suffix(".new")
        made.write_bytes(content)
        made.replace(file)
    return files


class Authority:
    """A company's own certificate authority."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Company authority")])
        self.file = directory / "authority.pem"
        """Its certificate, without the extensions that Python 3.13 demands of authorities."""
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._unsigned(self._name, self._key).add_extension(constraints, True)
        self._write(self.file, certificate)

    def server(self, *names: str) -> ssl.SSLContext:
        """The TLS settings of a server on this machine with these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternatives = x509.SubjectAlternativeName(
            [
                *(x509.DNSName(name) for name in names),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            ]
        )
        certificate = self._unsigned(subject, key).add_extension(alternatives, critical=False)
        file, key_file = self._directory / "server.pem", self._directory / "server.key"
        self._write(file, certificate)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file, key_file)
        return context

    def _unsigned(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )

    def _write(self, file: Path, certificate: x509.CertificateBuilder) -> None:
        signed = certificate.sign(self._key, hashes.SHA256())
        file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def trust_anew(
    monkeypatch: pytest.MonkeyPatch, *, file: Path | None = None, directory: Path | None = None
) -> None:
    """Name authorities in the environment, and let later connections of this test read them."""
    for name, path in ((authorities.FILE, file), (authorities.DIRECTORY, directory)):
        if path is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, str(path))
    anew = lru_cache(4)(authorities.client_context.__wrapped__)
    monkeypatch.setattr(authorities, "client_context", anew)


def sealed_key() -> bytes:
    """A key encrypted with a password."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open"),
    )


def unverified() -> ssl.SSLContext:
    """A context for clients that accept every certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def name_in(certificate: bytes) -> str:
    """The name in a DER certificate that a server sent."""
    found = x509.load_der_x509_certificate(certificate).subject
    value = found.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return value if isinstance(value, str) else value.decode()
