"""Certificates for servers on this machine."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

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
