"""Signing in with SAML 2, and forged responses."""

import base64
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import msgspec
import pytest

from tertulia.app.composition import asgi
from tertulia.app.sign_in_tables import methods_from
from tertulia.identity import saml
from tertulia.identity.provider import ProviderDown
from tertulia.identity.saml import SamlProvider
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.emails import no_email_job
from tests.saml_provider import (
    ACS,
    AUDIENCE,
    ENTITY,
    LOGOUT,
    SITE,
    SamlIdp,
    message_in,
    request_id_of,
)
from tests.support import Newcomer, Organization, new_organization
from tests.wire.test_app_sign_in import OTP, decoded_key, mobile_result

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

SESSION = "__Host-tertulia_session"


@pytest.fixture(scope="module")
def idp() -> SamlIdp:
    return SamlIdp()


@asynccontextmanager
async def organization(
    config: Config, idp: SamlIdp, place: Path, **more: Any
) -> AsyncIterator[Organization]:
    methods = methods_from([idp.table(place, **more)])
    own = msgspec.structs.replace(config, sign_in=methods, external_url=SITE)
    async with new_organization(own, others=(Newcomer("ben"),)) as org:
        yield org


@pytest.fixture
async def org(config: Config, idp: SamlIdp, tmp_path: Path) -> AsyncIterator[Organization]:
    async with organization(config, idp, tmp_path) as made:
        yield made


@asynccontextmanager
async def browser(org: Organization) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=asgi(org.node))
    async with httpx.AsyncClient(transport=transport, base_url=SITE) as client:
        yield client


async def begun(client: httpx.AsyncClient, query: str = "") -> str:
    """Begin to sign in, and return the request's ID."""
    response = await client.get(f"/sign-in/company{query}")
    assert response.status_code == 302
    return request_id_of(response.headers["location"])


async def brought(client: httpx.AsyncClient, xml: str) -> httpx.Response:
    """Send the response as the provider's page does: from another site, and so without cookies."""
    sent = {"SAMLResponse": base64.b64encode(xml.encode()).decode(), "RelayState": "/evil"}
    headers = {"Origin": "https://id.example.com", "Sec-Fetch-Site": "cross-site", "Cookie": ""}
    return await client.post("/sign-in/company/acs", data=sent, headers=headers)


async def finished(client: httpx.AsyncClient, xml: str) -> httpx.Response:
    response = await brought(client, xml)
    assert response.status_code == 303, response.text
    return await client.get(response.headers["location"])


@pytest.mark.parametrize("signs", ["assertion", "response", "both"])
async def test_people_sign_in(org: Organization, idp: SamlIdp, signs: str) -> None:
    async with browser(org) as client:
        request_id = await begun(client, "?next=/%23recent")
        response = await finished(client, idp.response(request_id, signs=signs))
        assert (response.status_code, response.headers["location"]) == (303, "/#recent")
        assert SESSION in client.cookies
    user = org.node.state.user_with_address("june@example.com")
    assert user is not None
    assert (user.full_name, user.role) == ("June Park", Role.MEMBER)
    async with browser(org) as client:
        xml = idp.response(await begun(client), signs=signs, email="new@example.com")
        assert (await finished(client, xml)).status_code == 303
    assert org.node.state.user_with_address("new@example.com") is None, "the ID counts"


async def test_the_mobile_app_gets_its_key(org: Organization, idp: SamlIdp) -> None:
    async with browser(org) as client:
        request_id = await begun(client, f"?mobile_flow_otp={OTP}")
        xml = idp.response(request_id, email="ben@example.com")
        result = mobile_result(await finished(client, xml))
    assert decoded_key(result["otp_encrypted_api_key"]) == org["ben"].api_key


async def test_roles_follow_the_provider_s_groups(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    roles = {"administrator": "chat-admins"}
    async with organization(config, idp, tmp_path, roles=roles) as org:
        for groups, role in (("staff|chat-admins", Role.ADMINISTRATOR), ("staff", Role.MEMBER)):
            async with browser(org) as client:
                xml = idp.response(await begun(client), email="june@example.com", groups=groups)
                assert (await finished(client, xml)).status_code == 303
            user = org.node.state.user_with_address("june@example.com")
            assert user is not None
            assert user.role is role


async def test_sign_in_can_begin_at_the_provider_if_the_settings_allow_it(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    async with organization(config, idp, tmp_path, provider_starts=True) as org:
        async with browser(org) as client:
            xml = idp.response()
            response = await finished(client, xml)
            assert (response.status_code, response.headers["location"]) == (303, "/")
            assert SESSION in client.cookies
        async with browser(org) as other:
            assert (await brought(other, xml)).status_code == 403, "an assertion counts once"


async def test_it_may_not_begin_there_otherwise(org: Organization, idp: SamlIdp) -> None:
    async with browser(org) as client:
        assert (await finished(client, idp.response())).status_code == 403
        assert SESSION not in client.cookies


async def test_the_response_belongs_to_the_browser_that_began(
    org: Organization, idp: SamlIdp
) -> None:
    """Nobody can sign someone else in to an account of their choice, or use a stolen response."""
    async with browser(org) as one, browser(org) as other:
        xml = idp.response(await begun(one))
        await begun(other)
        response = await brought(other, xml)
        path = response.headers["location"]
        assert (await other.get(path)).status_code == 400
        assert SESSION not in other.cookies
        assert (await one.get(path)).status_code == 400, "the answer was used"
        assert (await brought(one, xml)).status_code == 403, "so was the assertion"
        # A response that this server didn't check.
        assert (await one.get("/sign-in/company/acs?answer=x")).status_code == 400


def without_signature(xml: str) -> str:
    return re.sub(r"<ds:Signature.*?</ds:Signature>", "", xml, flags=re.S)


def assertion_in(xml: str) -> str:
    match = re.search(r"<saml:Assertion.*?</saml:Assertion>", xml, re.S)
    assert match is not None
    return match[0]


def evil(xml: str, new_id: str | None = "_evil") -> str:
    """Return the signed assertion for someone else, without the signature."""
    forged = without_signature(assertion_in(xml)).replace("june", "ann")
    return forged if new_id is None else re.sub(r' ID="[^"]*"', f' ID="{new_id}"', forged, count=1)


def wrapped(xml: str, how: str) -> str:
    """Return a document that shows one assertion to the signature check and another to the program,
    in a known way."""
    signed = assertion_in(xml)
    signature = re.search(r"<ds:Signature.*?</ds:Signature>", signed, re.S)
    assert signature is not None
    match how:
        case "evil first":
            return xml.replace(signed, evil(xml) + signed)
        case "evil last":
            return xml.replace(signed, signed + evil(xml))
        case "same ID":
            return xml.replace(signed, evil(xml, None) + signed)
        case "signed inside evil":
            forged = evil(xml)
            return xml.replace(
                signed, forged.replace("<saml:Subject>", f"{signed}<saml:Subject>", 1)
            )
        case "signed inside evil's signature":
            inner = signature[0].replace(
                "</ds:Signature>",
                f"<ds:Object>{without_signature(signed)}</ds:Object></ds:Signature>",
            )
            forged = evil(xml)
            return xml.replace(
                signed, forged.replace("</saml:Issuer>", f"</saml:Issuer>{inner}", 1)
            )
        case "signed in the extensions":
            moved = f"<samlp:Extensions>{signed}</samlp:Extensions>"
            return xml.replace(signed, evil(xml)).replace(
                "<samlp:Status>", f"{moved}<samlp:Status>"
            )
        case "comment in the name":
            return xml.replace("june@example.com", "ann@example.com<!-- -->.evil.com")
    raise ValueError(how)


WRAPPINGS = (
    *("evil first", "evil last", "same ID", "signed inside evil"),
    *("signed inside evil's signature", "signed in the extensions", "comment in the name"),
)


@pytest.mark.parametrize("how", WRAPPINGS)
async def test_wrapped_signatures_are_refused(org: Organization, idp: SamlIdp, how: str) -> None:
    async with browser(org) as client:
        xml = wrapped(idp.response(await begun(client)), how)
        assert "ann" in xml
        assert (await brought(client, xml)).status_code == 403
        assert SESSION not in client.cookies
    assert not org.node.state.identities


ENTITY_BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
FILE_ENTITY = '<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]>'


async def test_forged_responses_are_refused(
    org: Organization, idp: SamlIdp, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = SamlIdp()
    other = "https://other.example.com"
    sha1 = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
    async with browser(org) as client:
        request_id = await begun(client)
        good = idp.response(request_id)
        forged = {
            "unsigned": idp.response(request_id, signs="nothing"),
            "signature removed": without_signature(good),
            "another key": stranger.response(request_id),
            "changed": good.replace("june", "ann"),
            "weak algorithm": idp.response(request_id, algorithm=sha1),
            "another audience": idp.response(request_id, audience=f"{other}/metadata"),
            "no audience": idp.response(request_id, audience=None),
            "another recipient": idp.response(request_id, recipient=f"{other}/acs"),
            "recipient that begins alike": idp.response(request_id, recipient=f"{ACS}.evil"),
            "another issuer": idp.response(request_id, issuer=other),
            "another request": idp.response(request_id, confirms="_other"),
            "no request": idp.response(request_id, confirms=""),
            "expired": idp.response(request_id, age=3600),
            "early": idp.response(request_id, age=-3600),
            "no end": idp.response(request_id, ends=False),
            "entities": ENTITY_BOMB + good.replace("june-17", "&b;"),
            "a file": FILE_ENTITY + good.replace("june-17", "&f;"),
            "not XML": "x",
            "empty": "",
        }
        for name, xml in forged.items():
            caplog.clear()
            response = await brought(client, xml)
            if response.status_code == 429:
                pytest.fail("too many rows for the limit of guesses")
            assert response.status_code == 403, name
            (line,) = [one for one in caplog.records if one.msg == "refused a sign-in"]
            assert line.fields["reason"], name  # type: ignore[attr-defined]
            assert line.fields["reason"] not in response.text  # type: ignore[attr-defined]
        assert not org.node.state.identities
        assert (await finished(client, good)).status_code == 303


async def test_a_response_is_not_accepted_longer_than_it_is_remembered(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    """Otherwise, it could be replayed."""
    async with (
        organization(config, idp, tmp_path, provider_starts=True) as org,
        browser(org) as client,
    ):
        for age, status in ((3600, 403), (600, 303)):
            response = await brought(client, idp.response(age=age, minutes=480))
            assert response.status_code == status, age


async def test_the_provider_gets_this_server_s_metadata(org: Organization) -> None:
    async with browser(org) as client:
        response = await client.get("/sign-in/company/metadata")
    assert response.headers["content-type"].startswith("application/samlmetadata+xml")
    assert f'entityID="{AUDIENCE}"' in response.text
    assert f'Location="{ACS}"' in response.text


# Encrypted assertions


@pytest.fixture(scope="module")
def own_key(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """This server's key and certificate, as settings."""
    place, ours = tmp_path_factory.mktemp("key"), SamlIdp()
    (place / "saml.key").write_text(ours.key)
    (place / "saml.pem").write_text(ours.certificate)
    return {"key_file": str(place / "saml.key"), "certificate_file": str(place / "saml.pem")}


@pytest.fixture(scope="module")
def certificate(own_key: dict[str, str]) -> str:
    return Path(own_key["certificate_file"]).read_text()


@pytest.mark.parametrize("signs", ["assertion", "response", "both"])
async def test_assertions_can_be_encrypted(
    config: Config,
    idp: SamlIdp,
    tmp_path: Path,
    own_key: dict[str, str],
    certificate: str,
    signs: str,
) -> None:
    async with organization(config, idp, tmp_path, **own_key) as org:
        async with browser(org) as client:
            shown = (await client.get("/sign-in/company/metadata")).text
            assert 'use="encryption"' in shown
            assert certificate.split("\n")[1] in shown.replace("\n", "").replace(" ", "")
            begun_at = (await client.get("/sign-in/company")).headers["location"]
            assert "&Signature=" in begun_at
            request_id = request_id_of(begun_at)
            xml = idp.response(request_id, signs=signs, encrypts_to=certificate)
            assert "june@example.com" not in xml
            assert (await finished(client, xml)).status_code == 303
            assert SESSION in client.cookies
        for forged in (
            {"transport": "RSA_PKCS1"},
            {"signs": "nothing"},
            {"audience": "https://other.example.com"},
        ):
            async with browser(org) as client:
                facts: dict[str, Any] = {"signs": signs, **forged}
                xml = idp.response(await begun(client), encrypts_to=certificate, **facts)
                assert (await brought(client, xml)).status_code == 403, forged


async def test_without_a_key_nothing_is_decrypted(
    org: Organization, idp: SamlIdp, certificate: str
) -> None:
    async with browser(org) as client:
        assert "KeyDescriptor" not in (await client.get("/sign-in/company/metadata")).text
        xml = idp.response(await begun(client), encrypts_to=certificate)
        assert (await brought(client, xml)).status_code == 403


# The provider's metadata from a URL


class Published:
    """The provider's metadata on the web."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.fetched = 0
        self.is_down = False

    def down(self, reason: str) -> ProviderDown:
        return ProviderDown("Company account", reason)

    async def document(self, url: str) -> bytes:
        assert url == "https://id.example.com/metadata"
        self.fetched += 1
        if self.is_down:
            raise self.down("it took too long")
        return self.content.encode()


@asynccontextmanager
async def publishing(
    config: Config, idp: SamlIdp, place: Path, content: str | None = None
) -> AsyncIterator[tuple[Organization, Published, SamlProvider]]:
    by_url = {"metadata_file": "", "metadata_url": "https://id.example.com/metadata"}
    async with organization(config, idp, place, **by_url) as org:
        provider = org.node.providers.saml(org.node.config.sign_in[0])  # type: ignore[arg-type]
        web = Published(idp.metadata if content is None else content)
        provider._web = web  # type: ignore[assignment]
        yield org, web, provider


async def test_metadata_is_fetched_and_again_for_a_new_key(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    async with publishing(config, idp, tmp_path) as (org, web, provider):

        async def status(signer: SamlIdp) -> int:
            async with browser(org) as client:
                return (await brought(client, signer.response(await begun(client)))).status_code

        assert web.fetched == 0, "only at the first use"
        assert [await status(idp) for _ in range(2)] == [303, 303]
        assert web.fetched == 1
        rotated = SamlIdp()
        web.content = rotated.metadata
        # Signatures of strangers don't make this server fetch the metadata all the time.
        assert await status(rotated) == 403
        assert web.fetched == 1
        provider._read_at = provider._tried_at = provider._read_at - saml.REFETCH_SECONDS
        assert await status(rotated) == 303
        assert await status(idp) == 403, "the old key is gone"
        assert web.fetched == 2
        # While the provider is down, the known metadata is used.
        web.is_down = True
        provider._read_at = provider._tried_at = provider._read_at - saml.METADATA_SECONDS
        assert await status(rotated) == 303
        assert web.fetched == 3


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<html></html>",
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        "{metadata_with_entity}",
        "{metadata_without_place}",
    ],
)
async def test_metadata_that_cannot_be_used(
    config: Config, idp: SamlIdp, tmp_path: Path, content: str
) -> None:
    text = (
        content.format(
            metadata_with_entity='<!DOCTYPE a [<!ENTITY place SYSTEM "file:///etc/hostname">]>'
            + idp.metadata.replace(ENTITY, "&place;"),
            metadata_without_place=re.sub("<md:SingleSignOnService[^>]*/>", "", idp.metadata),
        )
        if content.startswith("{")
        else content
    )
    async with publishing(config, idp, tmp_path, text) as (org, _, provider):
        async with browser(org) as client:
            response = await client.get("/sign-in/company")
            assert response.status_code == 502
            assert "Company account" in response.text
            # The provider needs this server's metadata first.
            assert (await client.get("/sign-in/company/metadata")).status_code == 200
        with pytest.raises(ProviderDown):
            await provider.check()


# Signing out


async def signed_in(
    org: Organization, idp: SamlIdp, client: httpx.AsyncClient, **facts: Any
) -> None:
    assert (await finished(client, idp.response(await begun(client), **facts))).status_code == 303
    assert await is_signed_in(client)


async def is_signed_in(client: httpx.AsyncClient) -> bool:
    return (await client.get("/api/v1/users/me")).status_code == 200


async def test_the_provider_ends_sessions(
    config: Config, idp: SamlIdp, tmp_path: Path, own_key: dict[str, str]
) -> None:
    async with (
        organization(config, idp, tmp_path, **own_key) as org,
        browser(org) as desk,
        browser(org) as sofa,
        browser(org) as other,
        browser(org) as nobody,
    ):
        await signed_in(org, idp, desk, session="desk")
        await signed_in(org, idp, sofa, session="sofa")
        await signed_in(
            org, idp, other, name_id="ben-3", email="ben@example.com", session="another"
        )
        for wrong in (
            idp.logout("desk", signs=False),
            SamlIdp().logout("desk"),
            idp.logout("desk", destination=ACS),
            idp.logout("desk", destination=""),
            idp.logout("desk", issuer="https://evil.example.com"),
            idp.logout("desk", age=3600),
            idp.logout("desk").replace("RelayState=state", "RelayState=another"),
            idp.logout("desk") + "&RelayState=twice",
            LOGOUT,
        ):
            assert (await nobody.get(wrong)).status_code == 403, wrong
        # A session of another person.
        await nobody.get(idp.logout("desk", name_id="ben-3"))
        assert await is_signed_in(desk)
        message = idp.logout("desk")
        answer = await nobody.get(message)
        assert answer.status_code == 302
        back = message_in(answer.headers["location"], "SAMLResponse")
        assert answer.headers["location"].startswith("https://id.example.com/slo?")
        assert back.attrib["InResponseTo"] == message_in(message).attrib["ID"]
        assert parse_qs(answer.headers["location"])["RelayState"] == ["state at the provider"]
        assert "&Signature=" in answer.headers["location"]
        assert [await is_signed_in(one) for one in (desk, sofa, other)] == [False, True, True]
        # A replayed request ends nothing.
        await signed_in(org, idp, desk, session="desk")
        await nobody.get(message)
        assert await is_signed_in(desk)
        # Without a session, it ends all of the person's sessions.
        await nobody.get(idp.logout())
        assert [await is_signed_in(one) for one in (desk, sofa, other)] == [False, False, True]
        await nobody.get(idp.logout("another", name_id="ben-3"))
        assert not await is_signed_in(other)
        assert (await org["ben"].get("/users/me")).ok, "keys don't end with sessions"


async def test_people_can_sign_out_at_the_provider_too(
    config: Config, idp: SamlIdp, tmp_path: Path, own_key: dict[str, str]
) -> None:
    async with organization(config, idp, tmp_path, **own_key) as org, browser(org) as client:
        await signed_in(org, idp, client, session="a&lt;b")
        assert not any("sign_in" in name for name in client.cookies), "the attempt is over"
        token = client.cookies["__Host-tertulia_csrf"]
        out = await client.post("/logout", data={"csrf": token}, headers={"Origin": SITE})
        assert out.headers["location"] == "/login?signed_out=company"
        assert "/sign-in/company/end" in (await client.get(out.headers["location"])).text
        there = (await client.get("/sign-in/company/end")).headers["location"]
        assert there.startswith("https://id.example.com/slo?")
        assert "&Signature=" in there
        message = message_in(there)
        texts = {element.tag.rpartition("}")[2]: element.text for element in message}
        assert (texts["NameID"], texts["SessionIndex"]) == ("june-17", "a<b")
        # The provider's response, and a browser that isn't signed in there.
        for path in (f"{LOGOUT}?SAMLResponse=x", "/sign-in/company/end"):
            assert (await client.get(path)).headers["location"] == "/login"


def test_mistakes_are_said_at_the_start(tmp_path: Path, idp: SamlIdp) -> None:
    table = idp.table(tmp_path)
    for more, said in (
        ({"metadata_file": "/nowhere.xml"}, "metadata_file: can't read /nowhere.xml: No such file"),
        ({"metadata_file": ""}, "metadata_url or metadata_file is needed, and not both"),
        ({"metadata_url": "https://id.example.com"}, "metadata_url or metadata_file is needed"),
        ({"metadata_url": "http://id.example.com"}, "metadata_url must be an HTTPS URL"),
        ({"key_file": "/nowhere.key"}, "key_file and certificate_file belong together"),
    ):
        with pytest.raises(ValueError, match=said):
            methods_from([{**table, **more}])
    assert logging.getLogger("tertulia.sign_in")
