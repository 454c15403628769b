"""Signing in to Zulip's mobile and desktop apps through a page of this server."""

import re
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tertulia.model.changes import CredentialChanged
from tertulia.service.config import Config
from tertulia.wire.http.request_head import SESSION_COOKIE
from tertulia.wire.pages.sign_in_end import DESKTOP_SECONDS
from tests.browsers import page_text, set_password, signed_in_browser, signed_out_browser
from tests.emails import no_email_job
from tests.support import PASSWORD, Organization, TestClock, new_organization, row

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

RIGHT = {"username": "ann@example.com", "password": PASSWORD}
OTP = "186f6d085a5621ebaf1ccfc05033e8acba57dae03f061705ac1e58c402c30a31"
MOBILE = f"/login?mobile_flow_otp={OTP}"
DESKTOP = f"/login?desktop_flow_otp={OTP}"


def mobile_result(response: httpx.Response) -> dict[str, str]:
    """The parameters of the URL that opens the mobile app."""
    address = urlsplit(response.headers["location"])
    assert (response.status_code, address.scheme, address.netloc) == (302, "zulip", "login")
    return {name: values[0] for name, values in parse_qs(address.query).items()}


def decoded_key(encrypted: str) -> str:
    """The API key as the mobile app decodes it."""
    assert re.fullmatch(r"[0-9a-fA-F]{64}", encrypted)
    return bytes(
        a ^ b for a, b in zip(bytes.fromhex(encrypted), bytes.fromhex(OTP), strict=True)
    ).decode()


def desktop_code(response: httpx.Response) -> bytes:
    assert response.status_code == 200
    match = re.search(r'<input id="code"[^>]* value="([0-9a-f]+)"', response.text)
    assert match is not None
    return bytes.fromhex(match[1])


def desktop_path(response: httpx.Response, key: str = OTP) -> str:
    """The path that the desktop app opens once the code is in the clipboard."""
    code = desktop_code(response)
    token = AESGCM(bytes.fromhex(key)).decrypt(code[:12], code[12:], b"").decode()
    return f"/accounts/login/subdomain/{token}"


async def test_the_mobile_app_gets_the_api_key(shared_org: Organization) -> None:
    browser = signed_out_browser(shared_org)
    page = await browser.http.get(MOBILE)
    assert "zulip:" in page.headers["content-security-policy"]
    assert f'action="{MOBILE}"' in page.text
    result = mobile_result(await browser.http.post(MOBILE, data=RIGHT))
    ann = shared_org["ann"]
    assert decoded_key(result.pop("otp_encrypted_api_key")) == ann.api_key
    assert result == {
        "email": "ann@example.com",
        "user_id": str(ann.user_id),
        "realm": str(browser.http.base_url).rstrip("/"),
    }
    assert SESSION_COOKIE not in browser.http.cookies


async def test_a_browser_that_is_signed_in_still_asks_before_an_app_gets_the_key(
    shared_org: Organization,
) -> None:
    browser = await signed_in_browser(shared_org)
    for path in (MOBILE, DESKTOP):
        page = await browser.http.get(path)
        assert page.status_code == 200
        assert 'name="password"' in page.text


async def test_an_invalid_pad_is_refused(shared_org: Organization) -> None:
    for query in (
        "mobile_flow_otp=12",
        f"mobile_flow_otp={OTP[:-1]}g",
        f"desktop_flow_otp={OTP}00",
        f"mobile_flow_otp={OTP}&desktop_flow_otp={OTP}",
    ):
        with row(query):
            page = await signed_out_browser(shared_org).http.post(f"/login?{query}", data=RIGHT)
            assert page.status_code == 400
            assert "Start again in the app." in page_text(page)


async def test_the_desktop_app_exchanges_the_code_for_a_session(shared_org: Organization) -> None:
    browser, app = signed_out_browser(shared_org), signed_out_browser(shared_org)
    page = await browser.http.post(f"{DESKTOP}&next=/%23inbox", data=RIGHT)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert 'href="zulip://login?realm=' in page.text
    assert SESSION_COOKIE not in browser.http.cookies
    path = desktop_path(page)
    response = await app.http.get(path)
    assert (response.status_code, response.headers["location"]) == (303, "/#inbox")
    assert (await app.get("/users/me")).ok["user_id"] == shared_org["ann"].user_id
    again = await signed_out_browser(shared_org).http.get(path)
    assert again.status_code == 410
    assert (await browser.http.get("/static/desktop.js")).status_code == 200


async def test_the_code_is_for_this_app_only_and_for_a_minute(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await _try_codes(org, clock)


async def _try_codes(org: Organization, clock: TestClock) -> None:
    page = await signed_out_browser(org).http.post(DESKTOP, data=RIGHT)
    with pytest.raises(InvalidTag):
        desktop_path(page, key="0" * 64)
    path = desktop_path(page)
    other = await signed_out_browser(org).http.get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert other.status_code == 403
    assert (await signed_out_browser(org).http.get(f"{path}x")).status_code == 410
    clock.ahead += DESKTOP_SECONDS + 1
    assert (await signed_out_browser(org).http.get(path)).status_code == 410


async def test_the_code_ends_with_the_password_and_the_account(org: Organization) -> None:
    await set_password(org, "ben")
    sent = RIGHT | {"username": "ben@example.com"}
    path = desktop_path(await signed_out_browser(org).http.post(DESKTOP, data=sent))
    credential = org.node.state.credentials[org["ben"].user_id]
    other = msgspec.structs.replace(credential, password_hash="other")
    await org.do(CredentialChanged(credential=other, same_key=True))
    assert (await signed_out_browser(org).http.get(path)).status_code == 410
    await org.do(CredentialChanged(credential=credential, same_key=True))
    path = desktop_path(await signed_out_browser(org).http.post(DESKTOP, data=sent))
    assert (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    assert (await signed_out_browser(org).http.get(path)).status_code == 401
