"""A SAML 2 identity provider: its metadata, and responses signed by xmlsec."""

import base64
import datetime
import importlib
import secrets
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from xml.etree import ElementTree

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ENTITY = "https://id.example.com/saml"
SITE = "https://chat.example.com"
ACS = f"{SITE}/sign-in/company/acs"
LOGOUT = f"{SITE}/sign-in/company/logout"
AUDIENCE = f"{SITE}/sign-in/company/metadata"
_METADATA = """<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata"
 entityID="{entity}">
<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
<md:KeyDescriptor use="signing">
<ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data>
<ds:X509Certificate>{certificate}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>
<md:SingleLogoutService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
 Location="https://id.example.com/slo"/>
<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
 Location="https://id.example.com/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>"""
_LOGOUT = """<samlp:LogoutRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"
 xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="{request_id}" Version="2.0"
 IssueInstant="{now}" {destination}><saml:Issuer>{issuer}</saml:Issuer>
<saml:NameID>{name_id}</saml:NameID>{sessions}</samlp:LogoutRequest>"""
_RESPONSE = """<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"
 xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="{response_id}" Version="2.0"
 IssueInstant="{now}" Destination="{acs}"{in_response_to}><saml:Issuer>{issuer}</saml:Issuer>
<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>
{assertion}</samlp:Response>"""
_ASSERTION = """<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"
 xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 ID="{assertion_id}" Version="2.0" IssueInstant="{now}"><saml:Issuer>{issuer}</saml:Issuer>
<saml:Subject><saml:NameID>{name_id}</saml:NameID><saml:SubjectConfirmation
 Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData{end}
 Recipient="{recipient}"{in_response_to}/></saml:SubjectConfirmation></saml:Subject>
<saml:Conditions NotBefore="{begin}" NotOnOrAfter="{until}">{audience}</saml:Conditions>
<saml:AuthnStatement AuthnInstant="{now}" SessionIndex="{session}"><saml:AuthnContext>
<saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef>
</saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>{attributes}
</saml:AttributeStatement></saml:Assertion>"""


@dataclass
class SamlIdp:
    """The provider. `key` and `certificate` are PEM."""

    key: str = field(init=False)
    certificate: str = field(init=False)

    def __post_init__(self) -> None:
        pytest.importorskip("onelogin.saml2.auth", reason="needs the extra saml")
        key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "id.example.com")])
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), 1)
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .sign(key, hashes.SHA256())
        )
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        self.key = key.private_bytes(pem, pkcs8, serialization.NoEncryption()).decode()
        self.certificate = certificate.public_bytes(pem).decode()

    @property
    def metadata(self) -> str:
        body = "".join(self.certificate.strip().split("\n")[1:-1])
        return _METADATA.format(entity=ENTITY, certificate=body)

    def table(self, place: Path, **more: Any) -> dict[str, Any]:
        """Return the table `[[sign_in]]` for this provider."""
        file = place / "metadata.xml"
        file.write_text(self.metadata)
        return {
            "name": "company",
            "kind": "saml",
            "title": "Company account",
            "metadata_file": str(file),
            **more,
        }

    def signed(self, xml: str, algorithm: str = "") -> str:
        """Return the document with the signature of its root element."""
        from onelogin.saml2.utils import OneLogin_Saml2_Utils

        more = {"sign_algorithm": algorithm} if algorithm else {}
        found = OneLogin_Saml2_Utils.add_sign(xml, self.key, self.certificate, **more)
        text = found.decode() if isinstance(found, bytes) else found
        return text.removeprefix("<?xml version='1.0' encoding='utf-8'?>").strip()

    def response(
        self,
        request_id: str = "",
        *,
        signs: str = "assertion",
        name_id: str = "june-17",
        age: int = 0,
        minutes: int = 5,
        audience: str | None = AUDIENCE,
        recipient: str = ACS,
        issuer: str = ENTITY,
        confirms: str | None = None,
        ends: bool = True,
        algorithm: str = "",
        session: str = "s",
        encrypts_to: str = "",
        transport: str = "RSA_OAEP",
        **attributes: str,
    ) -> str:
        """Return a response as XML, issued `age` seconds ago and valid for some `minutes`. `signs`
        names the signed parts: the assertion, the response, both, or nothing. `confirms` is the
        request that the assertion answers, if it isn't `request_id`. `encrypts_to` is the
        certificate that the assertion is encrypted for, with `transport` as the encryption of its
        key."""
        now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
        until = _time(now + datetime.timedelta(minutes=minutes))
        attributes = attributes or {"email": "june@example.com", "displayName": "June Park"}
        confirmed = request_id if confirms is None else confirms
        values = {
            "now": _time(now),
            "begin": _time(now - datetime.timedelta(minutes=1)),
            "until": until,
            "issuer": issuer,
        }
        restriction = (
            "<saml:AudienceRestriction><saml:Audience>{}</saml:Audience></saml:AudienceRestriction>"
        )
        assertion = _ASSERTION.format(
            assertion_id=f"_a{secrets.token_hex(16)}",
            name_id=name_id,
            session=session,
            recipient=recipient,
            end=f' NotOnOrAfter="{until}"' if ends else "",
            in_response_to=f' InResponseTo="{confirmed}"' if confirmed else "",
            audience="" if audience is None else restriction.format(audience),
            attributes="".join(
                f'<saml:Attribute Name="{name}"><saml:AttributeValue xsi:type="xs:string">{value}'
                "</saml:AttributeValue></saml:Attribute>"
                for name, text in attributes.items()
                for value in text.split("|")
            ),
            **values,
        )
        if signs in {"assertion", "both"}:
            assertion = self.signed(assertion, algorithm)
        if encrypts_to:
            assertion = encrypted(assertion, encrypts_to, transport)
        response = _RESPONSE.format(
            response_id=f"_r{secrets.token_hex(16)}",
            acs=ACS,
            in_response_to=f' InResponseTo="{request_id}"' if request_id else "",
            assertion=assertion,
            **values,
        )
        return self.signed(response, algorithm) if signs in {"response", "both"} else response

    def logout(
        self,
        *sessions: str,
        name_id: str = "june-17",
        age: int = 0,
        destination: str = LOGOUT,
        issuer: str = ENTITY,
        signs: bool = True,
        form: bool = False,
    ) -> str:
        """Return the URL with which a browser brings a logout request; with `form`, the request as
        XML."""
        from onelogin.saml2.utils import OneLogin_Saml2_Utils

        now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
        xml = _LOGOUT.format(
            request_id=f"_l{secrets.token_hex(16)}",
            now=_time(now),
            destination=f'Destination="{destination}"' if destination else "",
            issuer=issuer,
            name_id=name_id,
            sessions="".join(
                f"<samlp:SessionIndex>{session}</samlp:SessionIndex>" for session in sessions
            ),
        )
        if form:
            return xml
        algorithm = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
        query = urlencode(
            {
                "SAMLRequest": base64.b64encode(zlib.compress(xml.encode(), wbits=-15)).decode(),
                "RelayState": "state at the provider",
                **({"SigAlg": algorithm} if signs else {}),
            }
        )
        if signs:
            signature = OneLogin_Saml2_Utils.sign_binary(query, self.key)
            query += "&" + urlencode({"Signature": base64.b64encode(signature).decode()})
        return f"{LOGOUT}?{query}"


def encrypted(assertion: str, certificate: str, transport: str) -> str:
    """Return the assertion, encrypted for the certificate."""
    # (They have no types.)
    xmlsec: Any = importlib.import_module("xmlsec")
    etree: Any = importlib.import_module("lxml.etree")
    manager = xmlsec.KeysManager()
    manager.add_key(xmlsec.Key.from_memory(certificate, xmlsec.KeyFormat.CERT_PEM))
    place = etree.fromstring(
        '<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"/>'
    )
    place.append(etree.fromstring(assertion))
    data = xmlsec.template.encrypted_data_create(
        place, xmlsec.Transform.AES256, type=xmlsec.EncryptionType.ELEMENT, ns="xenc"
    )
    xmlsec.template.encrypted_data_ensure_cipher_value(data)
    info = xmlsec.template.encrypted_data_ensure_key_info(data, ns="dsig")
    key = xmlsec.template.add_encrypted_key(info, getattr(xmlsec.Transform, transport))
    xmlsec.template.encrypted_data_ensure_cipher_value(key)
    context = xmlsec.EncryptionContext(manager)
    context.key = xmlsec.Key.generate(xmlsec.KeyData.AES, 256, xmlsec.KeyDataType.SESSION)
    context.encrypt_xml(data, place[0])
    text: bytes = etree.tostring(place)
    return text.decode()


def message_in(url: str, kind: str = "SAMLRequest") -> ElementTree.Element:
    """Return the message in a URL that the browser is redirected to."""
    (sent,) = parse_qs(urlsplit(url).query)[kind]
    return ElementTree.fromstring(zlib.decompress(base64.b64decode(sent), -15))


def request_id_of(url: str) -> str:
    """Return the ID of the request in the URL that the browser is redirected to."""
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == "https://id.example.com/sso"
    request = message_in(url)
    assert request.attrib["AssertionConsumerServiceURL"] == ACS
    return request.attrib["ID"]


def _time(when: datetime.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
