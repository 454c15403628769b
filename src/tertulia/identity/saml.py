"""SAML 2: requests to an identity provider, and its signed responses.

python3-saml checks signatures, with xmlsec, and most requirements of the standard. It accepts
responses without an audience, a recipient, or a request ID, so those are checked here.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit
from xml.sax.saxutils import escape

from msgspec import Struct

from tertulia.identity.provider import (
    LOGOUT_TOKEN_SECONDS,
    NotProven,
    ProviderDown,
    ProviderWeb,
)
from tertulia.identity.saml_attributes import identity_of
from tertulia.identity.saml_documents import (
    MetadataValidity,
    NotSigned,
    require_signed_root,
    validity_of,
)
from tertulia.model.identities import ProvenIdentity
from tertulia.service.provider_methods import SamlMethod
from tertulia.service.sign_in_methods import file_text

logger = logging.getLogger("tertulia.sign_in")

T = TypeVar("T")

METADATA_TYPE: Final = "application/samlmetadata+xml"
METADATA_SECONDS: Final = 86400.0
"""How long the provider's metadata is used before it's read again."""
REFETCH_SECONDS: Final = 60.0
"""How long unknown signing keys, or a provider that doesn't respond, don't cause another request
for the metadata."""
RESPONSE_SECONDS: Final = 3600
"""How long a response is accepted, and remembered so that it counts once."""
CLOCK_SKEW: Final = 300
"""Accepted difference between the provider's clock and this server's, in seconds."""
MAX_LOGOUT: Final = 16 * 1024
"""Longest logout message, in characters."""
_ASSERTION: Final = "{urn:oasis:names:tc:SAML:2.0:assertion}"
_ENCRYPTION: Final = "{http://www.w3.org/2001/04/xmlenc#}EncryptionMethod"
_WEAK_ENCRYPTION: Final = "http://www.w3.org/2001/04/xmlenc#rsa-1_5"
"""An encryption whose padding lets attackers decrypt after many attempts."""
_SIGNATURE: Final = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
_DIGEST: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
_BINDINGS: Final = "urn:oasis:names:tc:SAML:2.0:bindings:"
_DIGITAL: Final = re.compile(r"[A-Za-z0-9+/=\s]+")


class SamlName(Struct, frozen=True, array_like=True):
    """The provider's name for a signed-in person, needed to sign them out there."""

    name_id: str
    name_format: str = ""
    qualifier: str = ""
    own_qualifier: str = ""
    session: str = ""
    """The provider's ID of the session; may be empty."""


class SamlAnswer(Struct, frozen=True, kw_only=True):
    """The content of a valid response."""

    identity: ProvenIdentity
    name: SamlName
    assertion_id: str
    """Unique. Each assertion counts once."""
    request_id: str
    """The ID of the request that the response answers; empty if the provider started the
    sign-in."""


class SamlLogout(Struct, frozen=True, kw_only=True):
    """A provider's valid message that someone signed out at the provider."""

    message_id: str
    """Unique. Each message counts once."""
    subject: str
    """The person whose sessions end; empty if only the session IDs say it."""
    sessions: tuple[str, ...]
    """The provider's IDs of the sessions that end; empty for all of the subject's."""
    url: str
    """The URL for the response, which the browser delivers; empty if the provider doesn't accept
    one."""


class SamlProvider:
    """An identity provider, as its metadata describes it. Methods raise ProviderDown."""

    def __init__(self, method: SamlMethod, site: str, web: ProviderWeb) -> None:
        """`site` is this server's URL."""
        self._method = method
        self._place = f"{site}{method.path}"
        self._acs = f"{self._place}/acs"
        self._logout = f"{self._place}/logout"
        self._web = web
        self._busy = asyncio.Lock()
        self._metadata = ""
        self._ready: Any = None
        """The library's settings for this metadata."""
        self._read_at = self._tried_at = 0.0
        self._validity = MetadataValidity()

    # The provider's metadata

    async def _described(self, seconds: float = METADATA_SECONDS) -> Any:
        """Return the library's settings, from metadata that is at most `seconds` old if the
        provider responds."""
        async with self._busy:
            now = time.monotonic()
            age = min(seconds, self._validity.seconds)
            is_due = self._ready is None or now - self._read_at >= age
            if is_due and (not self._tried_at or now - self._tried_at >= REFETCH_SECONDS):
                self._tried_at = now
                try:
                    text = await self._read()
                    ready = await asyncio.to_thread(self._settings, text)
                    validity = self._validity_of(text)
                except ProviderDown as error:
                    if self._ready is None:
                        self._tried_at = 0.0
                        raise
                    logger.warning("%s: %s", self._method.name, error.reason)
                else:
                    self._metadata, self._ready, self._read_at = text, ready, now
                    self._validity = validity
            if self._validity.until <= time.time():
                raise self._web.down(
                    "the metadata has expired (validUntil), and there's none newer"
                )
            return self._ready

    def _validity_of(self, metadata: str) -> MetadataValidity:
        try:
            validity = validity_of(metadata, self._method.issuer)
        except Exception as error:  # The library doesn't document its errors for malformed times.
            raise self._web.down(f"the metadata's validity can't be read: {error}") from None
        if validity.until <= time.time():
            raise self._web.down("the metadata has expired (validUntil)")
        return validity

    async def _read(self) -> str:
        method = self._method
        try:
            if not method.metadata_url:
                return await asyncio.to_thread(file_text, method.metadata_file)
            return (await self._web.document(method.metadata_url)).decode()
        except (OSError, ValueError) as error:
            raise self._web.down(f"the metadata can't be read: {error}") from None

    def _settings(self, metadata: str | None, *, is_logout: bool = False) -> Any:
        """Return the library's settings. Without metadata, they can only describe this server."""
        from onelogin.saml2.idp_metadata_parser import OneLogin_Saml2_IdPMetadataParser
        from onelogin.saml2.settings import OneLogin_Saml2_Settings

        method = self._method
        certificate, key = file_text(method.certificate_file), file_text(method.key_file)
        described: Any = {}
        try:
            if metadata is not None:
                described = OneLogin_Saml2_IdPMetadataParser.parse(
                    metadata, entity_id=method.issuer or None
                )
            settings = OneLogin_Saml2_Settings(
                {
                    "strict": True,
                    "idp": described.get("idp", {}),
                    "sp": {
                        "entityId": f"{self._place}/metadata",
                        "assertionConsumerService": {
                            "url": self._acs,
                            "binding": f"{_BINDINGS}HTTP-POST",
                        },
                        "singleLogoutService": {
                            "url": self._logout,
                            "binding": f"{_BINDINGS}HTTP-Redirect",
                        },
                        "NameIDFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
                        "x509cert": certificate,
                        "privateKey": key,
                    },
                    "security": {
                        "wantAttributeStatement": False,
                        "rejectDeprecatedAlgorithm": True,
                        "requestedAuthnContext": False,
                        "allowRepeatAttributeName": True,
                        # Of logout requests. In responses, it's enough if the assertion is signed.
                        "wantMessagesSigned": is_logout,
                        "authnRequestsSigned": bool(key),
                        "signatureAlgorithm": _SIGNATURE,
                        "digestAlgorithm": _DIGEST,
                        # Only says whether this server's metadata has an encryption key. Encryption
                        # isn't required.
                        "wantAssertionsEncrypted": bool(key) and metadata is None,
                    },
                },
                sp_validation_only=metadata is None,
            )
            if metadata is not None and not settings.get_idp_sso_url():
                raise self._web.down("the metadata has no provider with HTTP-Redirect")
        except ProviderDown:
            raise
        except Exception as error:  # The library doesn't document its errors for crafted documents.
            raise self._web.down(f"it isn't a provider's metadata: {str(error)[:300]}") from None
        return settings

    async def check(self) -> str:
        """Read the metadata, and return a short summary of it."""
        self._ready, self._tried_at = None, 0.0
        settings = await self._described()
        entity = settings.get_idp_data()["entityId"]
        return f"the metadata of {entity} can be read"

    async def metadata(self) -> bytes:
        """Return this server's metadata, for the provider."""
        metadata: str | bytes = await asyncio.to_thread(
            lambda: self._settings(None).get_sp_metadata()
        )
        return metadata if isinstance(metadata, bytes) else metadata.encode()

    # Signing in

    async def request(self) -> tuple[str, str]:
        """Return the ID of a new request, and the URL to redirect the browser to."""
        from onelogin.saml2.authn_request import OneLogin_Saml2_Authn_Request

        settings = await self._described()

        def made() -> tuple[str, str]:
            request = OneLogin_Saml2_Authn_Request(settings)
            sent = {"SAMLRequest": request.get_request()}
            url = self._url(settings, settings.get_idp_sso_url(), sent, "SAMLRequest")
            return request.get_id(), url

        return await asyncio.to_thread(made)

    async def answer(self, text: str) -> SamlAnswer:
        """Return the content of a response in Base64. The caller checks the request, and that the
        assertion is new. Raises NotProven."""
        if not _DIGITAL.fullmatch(text):
            raise NotProven("the response isn't Base64")
        return await self._with_known_keys(lambda settings: self._answer(settings, text))

    async def _with_known_keys(self, check: Callable[[Any], T]) -> T:
        """Run a check in a thread, and return its result. If the provider signs with a new key,
        read its metadata again and repeat the check."""
        settings = await self._described()
        try:
            return await asyncio.to_thread(check, settings)
        except NotSigned:
            before = self._read_at
            settings = await self._described(REFETCH_SECONDS)
            if self._read_at == before:
                raise
            return await asyncio.to_thread(check, settings)

    def _answer(self, settings: Any, text: str) -> SamlAnswer:
        from onelogin.saml2.response import OneLogin_Saml2_Response
        from onelogin.saml2.xml_utils import OneLogin_Saml2_XML

        def checked() -> SamlAnswer:
            from base64 import b64decode

            for element in OneLogin_Saml2_XML.to_etree(b64decode(text)).iter(_ENCRYPTION):
                if element.get("Algorithm") == _WEAK_ENCRYPTION:
                    raise NotProven("the assertion is encrypted with RSA 1.5; use RSA-OAEP")
            response = OneLogin_Saml2_Response(settings, text)
            response.is_valid(self._received(self._acs), raise_exceptions=True)
            return self._checked(settings, response)

        return _proven(checked)

    @staticmethod
    def _received(url: str) -> dict[str, Any]:
        """Describe a request to this URL for the library."""
        parts = urlsplit(url)
        return {
            "https": "on" if parts.scheme == "https" else "off",
            "http_host": parts.netloc,
            "script_name": parts.path,
        }

    def _checked(self, settings: Any, response: Any) -> SamlAnswer:
        """Return the content of a response with a valid signature."""
        # The library reads only signed parts of the document.
        assertion_id = response.get_assertion_id()
        if settings.get_sp_data()["entityId"] not in response.get_audiences():
            raise NotProven("the assertion isn't for this server")
        document = response.decrypted_document if response.encrypted else response.document
        (assertion,) = (
            assertion
            for assertion in document.iter(f"{_ASSERTION}Assertion")
            if assertion.get("ID") == assertion_id
        )
        if not _is_recent(assertion.get("IssueInstant", ""), RESPONSE_SECONDS):
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
        name = response.get_nameid_data() or {}
        return SamlAnswer(
            identity=identity_of(self._method, name.get("Value") or "", response.get_attributes()),
            name=SamlName(
                name.get("Value") or "",
                name.get("Format") or "",
                name.get("NameQualifier") or "",
                name.get("SPNameQualifier") or "",
                response.get_session_index() or "",
            ),
            assertion_id=assertion_id,
            request_id=request_ids.pop(),
        )

    # Signing out

    async def has_logout(self) -> bool:
        """Whether people can sign out at the provider."""
        return bool((await self._described()).get_idp_slo_url())

    async def logout_url(self, name: SamlName) -> str:
        """Return the URL that signs this person out at the provider; empty if the provider doesn't
        support this."""
        from onelogin.saml2.logout_request import OneLogin_Saml2_Logout_Request

        settings = await self._described()

        def made() -> str:
            place = settings.get_idp_slo_url()
            if not place:
                return ""
            request = OneLogin_Saml2_Logout_Request(
                settings,
                name_id=name.name_id,
                session_index=escape(name.session),  # The library doesn't escape it.
                nq=name.qualifier or None,
                name_id_format=name.name_format or None,
                spnq=name.own_qualifier or None,
            )
            sent = {"SAMLRequest": request.get_request()}
            return self._url(settings, place, sent, "SAMLRequest")

        return await asyncio.to_thread(made)

    async def logged_out(self, query: str, sent: Mapping[str, str]) -> SamlLogout:
        """Return the content of a logout request that the browser brings from the provider. `query`
        is that of the URL, and `sent` are its parameters. The caller checks that the message is
        new. Raises NotProven."""
        if len(query) > MAX_LOGOUT or "SAMLRequest" not in sent:
            raise NotProven("the logout request is missing, or too long")

        def check(_: Any) -> SamlLogout:
            settings = self._settings(self._metadata, is_logout=True)
            return _proven(lambda: self._by_redirect(settings, query, sent))

        return await self._with_known_keys(check)

    async def logged_out_by_form(self, sent: Mapping[str, str]) -> SamlLogout:
        """Return the content of a logout request in a form (HTTP-POST). Otherwise as
        `logged_out`."""
        text = sent.get("SAMLRequest", "")
        if len(text) > MAX_LOGOUT or not _DIGITAL.fullmatch(text):
            raise NotProven("the logout request is missing, too long, or isn't Base64")

        def check(settings: Any) -> SamlLogout:
            return _proven(lambda: self._by_form(settings, text, sent))

        return await self._with_known_keys(check)

    def _by_form(self, settings: Any, text: str, sent: Mapping[str, str]) -> SamlLogout:
        from base64 import b64decode

        from onelogin.saml2.logout_request import OneLogin_Saml2_Logout_Request

        require_signed_root(settings, b64decode(text), "LogoutRequest")
        request = OneLogin_Saml2_Logout_Request(settings, text)
        return self._logged_out(settings, request, self._received(self._logout), sent)

    def _by_redirect(self, settings: Any, query: str, sent: Mapping[str, str]) -> SamlLogout:
        from onelogin.saml2.auth import OneLogin_Saml2_Auth
        from onelogin.saml2.logout_request import OneLogin_Saml2_Logout_Request

        received = {
            **self._received(self._logout),
            "get_data": dict(sent),
            "query_string": query,
            "validate_signature_from_qs": True,
        }
        auth = OneLogin_Saml2_Auth(received, settings)
        request = OneLogin_Saml2_Logout_Request(settings, sent["SAMLRequest"])
        if not auth.validate_request_signature(sent):
            raise NotSigned("the logout request isn't signed by the provider")
        return self._logged_out(settings, request, received, sent)

    def _logged_out(
        self, settings: Any, request: Any, received: Mapping[str, Any], sent: Mapping[str, str]
    ) -> SamlLogout:
        """Return the content of a logout request with a valid signature."""
        from onelogin.saml2.logout_response import OneLogin_Saml2_Logout_Response
        from onelogin.saml2.xml_utils import OneLogin_Saml2_XML

        request.is_valid(received, raise_exceptions=True)
        text = request.get_xml()
        root = OneLogin_Saml2_XML.to_etree(text)
        if root.get("Destination") != self._logout:
            raise NotProven("the logout request is for another recipient")
        if not _is_recent(root.get("IssueInstant", ""), LOGOUT_TOKEN_SECONDS):
            raise NotProven("the logout request is too old")
        name_id = request.get_nameid(text, settings.get_sp_key()) or ""
        subject = "" if self._method.id_attribute else name_id
        sessions = tuple(request.get_session_indexes(text))
        if not (subject or sessions):
            raise NotProven("the logout request doesn't say which session ended")
        answer = OneLogin_Saml2_Logout_Response(settings)
        answer.build(request.id)
        back = {"SAMLResponse": answer.get_response()}
        if "RelayState" in sent:
            back["RelayState"] = sent["RelayState"]
        place = settings.get_idp_slo_response_url()
        return SamlLogout(
            message_id=request.id,
            subject=subject,
            sessions=sessions,
            url=self._url(settings, place, back, "SAMLResponse") if place else "",
        )

    @staticmethod
    def _url(settings: Any, place: str, sent: dict[str, str], kind: str) -> str:
        """Return the provider's URL with a message. The message is signed if this server has a
        key."""
        from onelogin.saml2.auth import OneLogin_Saml2_Auth

        if settings.get_sp_key():
            auth = OneLogin_Saml2_Auth({}, settings)
            sign = (
                auth.add_request_signature
                if kind == "SAMLRequest"
                else (auth.add_response_signature)
            )
            sign(sent, _SIGNATURE)
        return f"{place}{'&' if '?' in place else '?'}{urlencode(sent)}"


def _proven(check: Callable[[], T]) -> T:
    """Return the result of a check. Its errors become NotProven."""
    from onelogin.saml2.errors import OneLogin_Saml2_ValidationError

    try:
        return check()
    except NotProven:
        raise
    except OneLogin_Saml2_ValidationError as error:
        is_unknown = error.code == OneLogin_Saml2_ValidationError.INVALID_SIGNATURE
        raise (NotSigned if is_unknown else NotProven)(str(error)[:300]) from None
    except Exception as error:  # The library doesn't document its errors for crafted documents.
        raise NotProven(f"{type(error).__name__}: {str(error)[:300]}") from None


def _is_recent(issued: str, seconds: int) -> bool:
    """Whether a message that was issued at this time may still be accepted: it's remembered for
    `seconds`."""
    from onelogin.saml2.utils import OneLogin_Saml2_Utils

    age: float = time.time() - OneLogin_Saml2_Utils.parse_SAML_to_time(issued)
    return -CLOCK_SKEW <= age < seconds - CLOCK_SKEW
