"""Signatures of SAML documents that are moved, copied, or made for something else."""

import base64
import copy
import datetime
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import httpx
import pytest

from tertulia.identity import saml
from tertulia.service.config import Config
from tests.emails import no_email_job
from tests.saml_provider import LOGOUT, SamlIdp, message_in
from tests.support import Organization
from tests.wire.test_app_sign_in import OTP, desktop_path
from tests.wire.test_saml import (
    SESSION,
    begun,
    brought,
    browser,
    finished,
    idp,
    is_signed_in,
    org,
    organization,
    own_key,
    publishing,
    signed_in,
)

__all__ = ["idp", "org", "own_key"]

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

NAMES: Final = {
    "saml": "urn:oasis:names:tc:SAML:2.0:assertion",
    "samlp": "urn:oasis:names:tc:SAML:2.0:protocol",
    "ds": "http://www.w3.org/2000/09/xmldsig#",
}
SHA1: Final = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"

etree: Any = importlib.import_module("lxml.etree")


def one(node: Any, path: str) -> Any:
    (found,) = node.xpath(path, namespaces=NAMES)
    return found


def unsigned(node: Any) -> Any:
    """Return a copy without signatures."""
    made = copy.deepcopy(node)
    for signature in made.xpath(".//ds:Signature", namespaces=NAMES):
        signature.getparent().remove(signature)
    return made


def evil(node: Any, new_id: str = "_evil") -> Any:
    """Return a copy without signatures, for someone else."""
    text = etree.tostring(unsigned(node)).decode().replace("june", "ann")
    made = etree.fromstring(text)
    made.set("ID", new_id)
    return made


def whole_response(root: Any, *, before: bool) -> Any:
    """XSW1, XSW2: another response around the signature of the first one."""
    signature = one(root, "./ds:Signature")
    forged, original = evil(root), unsigned(root)
    moved = copy.deepcopy(signature)
    if before:
        forged.insert(1, original)
        forged.insert(2, moved)
    else:
        moved.append(original)
        forged.insert(1, moved)
    return forged


def assertion_before(root: Any) -> Any:
    """XSW3"""
    assertion = one(root, "./saml:Assertion")
    assertion.addprevious(evil(assertion))
    return root


def assertion_around(root: Any) -> Any:
    """XSW4"""
    assertion = one(root, "./saml:Assertion")
    forged = evil(assertion)
    root.replace(assertion, forged)
    forged.append(assertion)
    return root


def signature_taken(root: Any) -> Any:
    """XSW5: the forged assertion has the signature, and the original one comes after it."""
    assertion = one(root, "./saml:Assertion")
    signature = copy.deepcopy(one(assertion, "./ds:Signature"))
    forged = evil(assertion)
    forged.insert(1, signature)
    root.replace(assertion, forged)
    root.append(unsigned(assertion))
    return root


def original_in_signature(root: Any) -> Any:
    """XSW6"""
    assertion = one(root, "./saml:Assertion")
    signature = copy.deepcopy(one(assertion, "./ds:Signature"))
    signature.append(unsigned(assertion))
    forged = evil(assertion)
    forged.insert(1, signature)
    root.replace(assertion, forged)
    return root


def evil_in_extensions(root: Any) -> Any:
    """XSW7"""
    extensions = etree.SubElement(root, f"{{{NAMES['samlp']}}}Extensions")
    extensions.append(evil(one(root, "./saml:Assertion")))
    one(root, "./samlp:Status").addprevious(extensions)
    return root


def original_in_object(root: Any) -> Any:
    """XSW8"""
    assertion = one(root, "./saml:Assertion")
    signature = copy.deepcopy(one(assertion, "./ds:Signature"))
    etree.SubElement(signature, f"{{{NAMES['ds']}}}Object").append(unsigned(assertion))
    forged = evil(assertion)
    forged.insert(1, signature)
    root.replace(assertion, forged)
    return root


WRAPPINGS: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "XSW1": ("response", lambda root: whole_response(root, before=False)),
    "XSW2": ("response", lambda root: whole_response(root, before=True)),
    "XSW3": ("assertion", assertion_before),
    "XSW4": ("assertion", assertion_around),
    "XSW5": ("assertion", signature_taken),
    "XSW6": ("assertion", original_in_signature),
    "XSW7": ("assertion", evil_in_extensions),
    "XSW8": ("assertion", original_in_object),
}


@pytest.mark.parametrize("same_id", [False, True])
@pytest.mark.parametrize("how", WRAPPINGS)
async def test_every_known_wrapping_is_refused(
    org: Organization, idp: SamlIdp, how: str, *, same_id: bool
) -> None:
    signs, wrap = WRAPPINGS[how]
    async with browser(org) as client:
        root = etree.fromstring(idp.response(await begun(client), signs=signs))
        signed_id = (
            root.get("ID") if signs == "response" else one(root, ".//saml:Assertion").get("ID")
        )
        text = etree.tostring(wrap(root)).decode()
        if same_id:
            text = text.replace('ID="_evil"', f'ID="{signed_id}"')
        assert "ann@example.com" in text
        assert (await brought(client, text)).status_code == 403
        assert SESSION not in client.cookies
    assert not org.node.state.identities


# Logout requests in forms


async def posted(client: httpx.AsyncClient, xml: str, **more: str) -> httpx.Response:
    """Send the request as the provider's page does."""
    sent = {"SAMLRequest": base64.b64encode(xml.encode()).decode(), **more}
    headers = {"Origin": "https://id.example.com", "Sec-Fetch-Site": "cross-site", "Cookie": ""}
    return await client.post(LOGOUT, data=sent, headers=headers)


async def test_the_provider_ends_sessions_by_a_form(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    async with (
        organization(config, idp, tmp_path) as org,
        browser(org) as desk,
        browser(org) as nobody,
    ):
        await signed_in(org, idp, desk, session="desk")
        plain = idp.logout("desk", form=True)
        signed = idp.signed(plain)
        root = etree.fromstring(signed)
        forged = etree.fromstring(idp.logout("desk", form=True))
        signature = copy.deepcopy(one(root, "./ds:Signature"))
        signature.append(unsigned(root))
        forged.insert(1, signature)
        other = idp.signed(idp.logout("desk", form=True)).replace("desk", "sofa")
        for wrong in (
            plain,
            SamlIdp().signed(plain),
            idp.signed(plain, SHA1),
            etree.tostring(forged).decode(),
            other,
            idp.signed(idp.logout("desk", form=True, destination="")),
            idp.signed(idp.logout("desk", form=True, issuer="https://evil.example.com")),
            idp.signed(idp.logout("desk", form=True, age=3600)),
            idp.response(),
            '<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]><r>&f;</r>',
            "",
        ):
            assert (await posted(nobody, wrong)).status_code == 403, wrong
        assert await is_signed_in(desk)
        answer = await posted(nobody, signed, RelayState="state at the provider")
        assert answer.status_code == 302, answer.text
        back = message_in(answer.headers["location"], "SAMLResponse")
        assert back.attrib["InResponseTo"] == root.get("ID")
        assert not await is_signed_in(desk)
        # A replayed request ends nothing.
        await signed_in(org, idp, desk, session="desk")
        await posted(nobody, signed)
        assert await is_signed_in(desk)
        # The provider's response to a request of ours, in a form.
        done = await nobody.post(LOGOUT, data={"SAMLResponse": "x"})
        assert done.headers["location"] == "/login"


async def test_signing_out_here_can_go_on_to_the_provider(
    config: Config, idp: SamlIdp, tmp_path: Path, own_key: dict[str, str]
) -> None:
    own = organization(config, idp, tmp_path, single_logout=True, **own_key)
    async with own as org, browser(org) as client:
        await signed_in(org, idp, client)
        token = client.cookies["__Host-tertulia_csrf"]
        sent = {"Origin": "https://chat.example.com"}
        out = await client.post("/logout", data={"csrf": token}, headers=sent)
        page = await client.get(out.headers["location"])
        assert page.headers["refresh"] == "0; url=/sign-in/company/end"
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        evil = await client.get("/sign-in/company/end", headers=elsewhere)
        assert evil.status_code == 403, "another site signs nobody out"
        there = await client.get("/sign-in/company/end")
        assert there.headers["location"].startswith("https://id.example.com/slo?")
        back = await client.get(f"{LOGOUT}?SAMLResponse=x")
        assert back.headers["location"] == "/login"
        assert "refresh" not in (await client.get("/login")).headers


# Validity of metadata


def valid_until(idp: SamlIdp, days: float, more: str = "") -> str:
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    attribute = f'validUntil="{end:%Y-%m-%dT%H:%M:%SZ}" {more}'
    return idp.metadata.replace("entityID", f"{attribute} entityID")


async def test_metadata_is_used_only_while_it_is_valid(
    config: Config, idp: SamlIdp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        publishing(config, idp, tmp_path, valid_until(idp, -1)) as (org, web, provider),
        browser(org) as client,
    ):
        assert (await client.get("/sign-in/company")).status_code == 502
        web.content = valid_until(idp, 1)
        provider._tried_at = 0.0
        assert (await client.get("/sign-in/company")).status_code == 302
        # The provider doesn't publish newer metadata.
        web.is_down = True
        later = time.time() + 2 * 86400
        monkeypatch.setattr(
            saml, "time", SimpleNamespace(time=lambda: later, monotonic=time.monotonic)
        )
        assert (await client.get("/sign-in/company")).status_code == 502


@pytest.mark.parametrize(("duration", "fetched"), [("PT1H", 2), ("P7D", 1), ("", 1)])
async def test_metadata_is_read_again_as_often_as_it_says(
    config: Config, idp: SamlIdp, tmp_path: Path, duration: str, fetched: int
) -> None:
    content = valid_until(idp, 30, f'cacheDuration="{duration}"' if duration else "")
    async with publishing(config, idp, tmp_path, content) as (org, web, provider):
        async with browser(org) as client:
            await begun(client)
            provider._read_at = provider._tried_at = provider._read_at - 7200
            await begun(client)
        assert web.fetched == fetched


async def test_a_malformed_time_is_not_taken_for_no_end(
    config: Config, idp: SamlIdp, tmp_path: Path
) -> None:
    content = idp.metadata.replace("entityID", 'validUntil="soon" entityID')
    async with (
        publishing(config, idp, tmp_path, content) as (org, _, _provider),
        browser(org) as client,
    ):
        assert (await client.get("/sign-in/company")).status_code == 502


@pytest.mark.parametrize("cut", ["ann@example.com", "ann"])
async def test_a_comment_does_not_cut_a_signed_text_short(
    org: Organization, idp: SamlIdp, cut: str
) -> None:
    """Signatures ignore comments, so anyone can add a comment to a text that was signed for
    them."""
    own = f"{cut}.evil@example.org" if cut == "ann" else f"{cut}.evil.org"
    async with browser(org) as client:
        request_id = await begun(client)
        xml = idp.response(request_id, name_id=own, email=own, displayName="Eve")
        xml = xml.replace(own, own.replace(cut, f"{cut}<!-- -->", 1))
        assert "<!-- -->" in xml
        response = await brought(client, xml)
        if response.status_code == 303:
            assert (await client.get(response.headers["location"])).status_code == 303
    # It's refused, or the whole text counts.
    assert {one.subject for one in org.node.state.identities} <= {own}
    assert {org.node.state.users[one.user_id].address for one in org.node.state.identities} <= {own}


async def test_the_desktop_app_gets_its_code(org: Organization, idp: SamlIdp) -> None:
    async with browser(org) as client, browser(org) as app:
        request_id = await begun(client, f"?desktop_flow_otp={OTP}")
        page = await finished(client, idp.response(request_id, email="ben@example.com"))
        assert (await app.get(desktop_path(page))).status_code == 303
        assert await is_signed_in(app)
        assert not await is_signed_in(client)
