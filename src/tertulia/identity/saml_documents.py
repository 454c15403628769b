"""Signatures and validity of SAML documents."""

import math
from typing import Any, Final

from msgspec import Struct

from tertulia.identity.provider import NotProven

_PROTOCOL: Final = "{urn:oasis:names:tc:SAML:2.0:protocol}"
_ENTITY: Final = "{urn:oasis:names:tc:SAML:2.0:metadata}EntityDescriptor"
_SIGNATURES: Final = "{http://www.w3.org/2000/09/xmldsig#}"
_TRANSFORMS: Final = frozenset(
    {
        "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
        "http://www.w3.org/2001/10/xml-exc-c14n#",
    }
)
"""The accepted transforms. Others could leave out parts of the signed document."""
_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_METHODS: Final = frozenset(
    _MORE + name
    for name in (
        *("rsa-sha256", "rsa-sha384", "rsa-sha512"),
        *("ecdsa-sha256", "ecdsa-sha384", "ecdsa-sha512"),
    )
)


class NotSigned(NotProven):
    """The document isn't signed with a known key of the provider."""


class MetadataValidity(Struct, frozen=True, kw_only=True):
    """How long a provider's metadata is valid."""

    until: float = math.inf
    """UNIX time (`validUntil`)."""
    seconds: float = math.inf
    """How long it may be used before it's read again (`cacheDuration`)."""


def validity_of(metadata: str, issuer: str) -> MetadataValidity:
    """Return the validity of the metadata as a whole and of the provider `issuer`, or of all
    providers if that's empty. The library raises various errors for malformed times."""
    from onelogin.saml2.utils import OneLogin_Saml2_Utils
    from onelogin.saml2.xml_utils import OneLogin_Saml2_XML

    root = OneLogin_Saml2_XML.to_etree(metadata)
    entities = [
        root,
        *(one for one in root.iter(_ENTITY) if not issuer or one.get("entityID") == issuer),
    ]
    ends = [
        OneLogin_Saml2_Utils.parse_SAML_to_time(text)
        for one in entities
        if (text := one.get("validUntil"))
    ]
    periods = [
        OneLogin_Saml2_Utils.parse_duration(text, 0)
        for one in entities
        if (text := one.get("cacheDuration"))
    ]
    return MetadataValidity(
        until=min(ends, default=math.inf), seconds=min(periods, default=math.inf)
    )


def require_signed_root(settings: Any, document: bytes, name: str) -> None:
    """Raise NotProven unless the document's root is a `name` and the provider signed all of it."""
    from onelogin.saml2.utils import OneLogin_Saml2_Utils
    from onelogin.saml2.xml_utils import OneLogin_Saml2_XML

    root = OneLogin_Saml2_XML.to_etree(document)
    signatures = list(root.iter(f"{_SIGNATURES}Signature"))
    if root.tag != _PROTOCOL + name or len(signatures) != 1 or signatures[0].getparent() != root:
        raise NotProven(f"it isn't a {name} with one signature")
    (signature,) = signatures
    references = list(signature.iter(f"{_SIGNATURES}Reference"))
    ids = [one.get("ID") for one in root.iter() if one.get("ID")]
    if len(references) != 1 or references[0].get("URI") != f"#{root.get('ID')}":
        raise NotProven("the signature is of something else")
    if len(ids) != len(set(ids)):
        raise NotProven("two elements have the same ID")
    transforms = {one.get("Algorithm") for one in signature.iter(f"{_SIGNATURES}Transform")}
    methods = {one.get("Algorithm") for one in signature.iter(f"{_SIGNATURES}SignatureMethod")}
    if not (transforms <= _TRANSFORMS and methods <= _METHODS):
        raise NotProven("the signature's algorithm isn't accepted")
    described = settings.get_idp_data()
    several = described.get("x509certMulti", {}).get("signing")
    if not OneLogin_Saml2_Utils.validate_sign(
        document,
        described.get("x509cert"),
        xpath=f"/samlp:{name}/ds:Signature",
        multicerts=several or None,
    ):
        raise NotSigned(f"the {name} isn't signed by the provider")
