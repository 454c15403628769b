"""SAML 2: requests to an identity provider, and its signed responses.

python3-saml checks signatures, with xmlsec, and most of what the standard demands. What it accepts
although it's missing is checked here: the audience, the recipient, and which request is answered.
"""

import re
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from tertulia.identity.provider import NotProven
from tertulia.model.identities import ProvenIdentity
from tertulia.service.sign_in_methods import SamlMethod, file_text

METADATA_TYPE: Final = "application/samlmetadata+xml"
RESPONSE_SECONDS: Final = 3600
"""How long a response is remembered, so that it counts once. Older ones aren't accepted."""
CLOCK_SKEW: Final = 300
"""Accepted difference between the provider's clock and this server's, in seconds."""
_ASSERTION: Final = "{urn:oasis:names:tc:SAML:2.0:assertion}"
_BINDINGS: Final = "urn:oasis:names:tc:SAML:2.0:bindings:"
_DIGITAL: Final = re.compile(r"[A-Za-z0-9+/=\s]+")


class SamlAnswer(Struct, frozen=True, kw_only=True):
    """What a valid response says."""

    identity: ProvenIdentity
    assertion_id: str
    """Unique; an assertion counts once."""
    request_id: str
    """The request that it answers; empty if the provider began."""


class SamlProvider:
    """An identity provider, as its metadata describes it. Methods compute, or read a file, so call
    them in a thread."""

    def __init__(self, method: SamlMethod, site: str) -> None:
        """`site` is this server's URL."""
        self._method = method
        self._site = site
        self._place = f"{site}{method.path}"
        self._acs = f"{self._place}/acs"

    @cached_property
    def _settings(self) -> Any:
        from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser
        from onelogin.saml2.settings import OneLogin_Saml2_Settings

        described = OneLogin_Saml2_IdPMetadataParser.parse(
            file_text(self._method.metadata_file), entity_id=self._method.issuer or None
        )
        return OneLogin_Saml2_Settings(
            {
                "strict": True,
                "idp": described.get("idp", {}),
                "sp": {
                    "entityId": f"{self._place}/metadata",
                    "assertionConsumerService": {
                        "url": self._acs,
                        "binding": f"{_BINDINGS}HTTP-POST",
                    },
                    "NameIDFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
                },
                "security": {
                    "wantAttributeStatement": False,
                    "rejectDeprecatedAlgorithm": True,
                    "requestedAuthnContext": False,
                    "allowRepeatAttributeName": True,
                },
            }
        )

    def check(self) -> None:
        """Raise ValueError if the metadata doesn't describe a provider."""
        from onelogin.saml2.errors import OneLogin_Saml2_Error

        try:
            provider = self._settings.get_idp_data()
        except (OneLogin_Saml2_Error, OSError, ValueError, SyntaxError) as error:
            raise ValueError(f"metadata_file: it isn't a provider's metadata: {error}") from None
        if not (provider.get("entityId") and provider.get("singleSignOnService", {}).get("url")):
            raise ValueError("metadata_file: it has no provider with HTTP-Redirect")

    def metadata(self) -> bytes:
        """Return this server's metadata, for the provider."""
        result: str | bytes = self._settings.get_sp_metadata()
        return result if isinstance(result, bytes) else result.encode()

    def request(self) -> tuple[str, str]:
        """Return the ID of a new request, and where to send the browser with it."""
        from onelogin.saml2.authn_request import OneLogin_Saml2_Authn_Request

        made = OneLogin_Saml2_Authn_Request(self._settings)
        place = self._settings.get_idp_sso_url()
        query = urlencode({"SAMLRequest": made.get_request()})
        return made.get_id(), f"{place}{'&' if '?' in place else '?'}{query}"

    def answer(self, text: str) -> SamlAnswer:
        """Return what a response in Base64 says. The caller checks the request and that the
        assertion is new. Raises NotProven."""
        from onelogin.saml2.errors import OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError
        from onelogin.saml2.response import OneLogin_Saml2_Response

        if not _DIGITAL.fullmatch(text):
            raise NotProven("the response isn't Base64")
        parts = urlsplit(self._acs)
        received = {
            "https": "on" if parts.scheme == "https" else "off",
            "http_host": parts.netloc,
            "script_name": parts.path,
        }
        try:
            response = OneLogin_Saml2_Response(self._settings, text)
            response.is_valid(received, raise_exceptions=True)
            return self._checked(response)
        except NotProven:
            raise
        except (OneLogin_Saml2_Error, OneLogin_Saml2_ValidationError) as error:
            raise NotProven(str(error)[:300]) from None
        except Exception as error:  # The library doesn't say what crafted documents raise.
            raise NotProven(f"{type(error).__name__}: {str(error)[:300]}") from None

    def _checked(self, response: Any) -> SamlAnswer:
        """Return what a response says whose signature is valid."""
        # The library's queries see only what is signed.
        assertion_id = response.get_assertion_id()
        if self._settings.get_sp_data()["entityId"] not in response.get_audiences():
            raise NotProven("the assertion isn't for this server")
        document = response.decrypted_document if response.encrypted else response.document
        (assertion,) = (
            value
            for value in document.iter(f"{_ASSERTION}Assertion")
            if value.get("ID") == assertion_id
        )
        if not _is_recent(assertion.get("IssueInstant", "")):
            raise NotProven("the assertion is too old")
        request_ids = set()
        for data in assertion.iter(f"{_ASSERTION}SubjectConfirmationData"):
            if data.get("Recipient") != self._acs:
                raise NotProven("the assertion is for another recipient")
            if not data.get("NotOnOrAfter"):
                raise NotProven("the assertion has no end")
            request_ids.add(data.get("InResponseTo") or "")
        if len(request_ids) != 1 or request_ids != {response.get_in_response_to() or ""}:
            raise NotProven("the assertion and the response answer different requests")
        return SamlAnswer(
            identity=self._identity(response.get_nameid() or "", response.get_attributes()),
            assertion_id=assertion_id,
            request_id=request_ids.pop(),
        )

    def _identity(self, name_id: str, sent: Mapping[str, list[str]]) -> ProvenIdentity:
        method = self._method
        known_by = _first(sent, [method.id_attribute]) if method.id_attribute else name_id
        address = _first(sent, [method.address_attribute or "", *_ADDRESSES])
        if not address and "@" in name_id:
            address = name_id
        groups = {
            text for name in (method.groups_attribute, *_GROUPS) for text in sent.get(name, ())
        }
        return ProvenIdentity(
            method=method.name,
            subject=known_by,
            address=address,
            # The provider belongs to the operator.
            is_address_verified=True,
            full_name=_first(sent, [method.name_attribute, *_NAMES]) or _both_names(sent),
            # Only what matters here: some providers send hundreds.
            groups=frozenset(groups & {*method.roles.values(), *method.groups.values()}),
        )


_CLAIMS: Final = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
_ADDRESSES: Final = (
    "email",
    "mail",
    "Email",
    f"{_CLAIMS}/emailaddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
)
_NAMES: Final = (
    "displayName",
    "name",
    "http://schemas.microsoft.com/identity/claims/displayname",
    "urn:oid:2.16.840.1.113730.3.1.241",
)
_GROUPS: Final = ("groups", "http://schemas.microsoft.com/ws/2008/06/identity/claims/groups")
_GIVEN: Final = ("firstName", "givenName", f"{_CLAIMS}/givenname", "urn:oid:2.5.4.42")
_FAMILY: Final = ("lastName", "surname", "sn", f"{_CLAIMS}/surname", "urn:oid:2.5.4.4")


def _first(sent: Mapping[str, list[str]], names: Iterable[str]) -> str:
    """The first value of the first attribute that was sent."""
    values = (value for name in names for value in sent.get(name, ()) if value)
    return next(values, "").strip()


def _is_recent(issued: str) -> bool:
    """Whether an assertion of this time is remembered as long as it's accepted."""
    from onelogin.saml2.utils import OneLogin_Saml2_Utils

    age: float = time.time() - OneLogin_Saml2_Utils.parse_SAML_to_time(issued)
    return -CLOCK_SKEW <= age < RESPONSE_SECONDS - CLOCK_SKEW


def _both_names(sent: Mapping[str, list[str]]) -> str:
    return f"{_first(sent, _GIVEN)} {_first(sent, _FAMILY)}".strip()
