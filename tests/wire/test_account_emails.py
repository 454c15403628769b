"""Emails about people's accounts, and when a browser must confirm the password."""

import re
from collections.abc import AsyncIterator

import msgspec
import pytest

from tertulia.outbound.mail_templates import RenderedMail
from tertulia.service.config import Config
from tests.browsers import send_csrf_token, set_password, signed_in_browser, signed_out_browser
from tests.emails import due_emails, no_email_job
from tests.support import PASSWORD, Newcomer, Organization, Person, TestClock, new_organization
from tests.wire.test_app_sign_in import DESKTOP, desktop_path

pytestmark = [
    pytest.mark.usefixtures("no_logged_errors"),
    pytest.mark.usefixtures(no_email_job.__name__),
]

ANN = {"username": "ann@example.com", "password": PASSWORD}
NEW = {"old_password": PASSWORD, "new_password": "other good words"}
LATER = 901
"""Seconds after which the password must be confirmed again."""


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """An organization whose people joined an hour ago."""
    async with new_organization(
        config, others=(Newcomer("ben"), Newcomer("robo", owner="ben")), clock=clock
    ) as organization:
        clock.ahead = 3600
        yield organization


async def one(org: Organization, to: str = "ann@example.com") -> RenderedMail:
    (letter,) = await due_emails(org)
    assert letter.to == to
    return letter


# Deactivation


@pytest.mark.parametrize("comment", ["Thank you {for} all.", "", None])
async def test_a_deactivated_person_is_emailed_if_wanted(
    org: Organization, comment: str | None
) -> None:
    path = f"/users/{org['ben'].user_id}"
    long = {"deactivation_notification_comment": "x" * 2001}
    (await org["ann"].delete(path, **long)).refused("REQUEST_VARIABLE_INVALID")
    assert (await org["ann"].delete(path, deactivation_notification_comment=comment)).ok
    if comment is None:
        assert await due_emails(org) == []
        return
    letter = await one(org, "ben@example.com")
    assert "was deactivated" in letter.subject
    assert comment in letter.text


# Sign-in


async def test_a_sign_in_with_a_new_browser_is_emailed(org: Organization) -> None:
    browser = signed_out_browser(org)
    (await browser.post("/sessions", **ANN)).ok
    letter = await one(org)
    assert "New sign-in" in letter.subject
    for said in ("127.0.0.1", "Firefox", "UTC", "http://chat.test/reset"):
        assert said in letter.text
    # Afterwards the browser and its location are known.
    for other in (browser, signed_out_browser(org)):
        (await other.raw("POST", "/sessions", data=ANN, headers=csrf(other))).ok
    assert await due_emails(org) == []


def csrf(browser: Person) -> dict[str, str]:
    token = browser.http.cookies.get("tertulia_csrf")
    return {"X-CSRF-Token": token} if token else {}


async def test_a_sign_in_with_a_program_is_emailed_once(org: Organization) -> None:
    (await org.nobody.post("/fetch_api_key", **ANN)).ok
    assert "New sign-in" in (await one(org)).subject
    (await org.nobody.post("/fetch_api_key", **ANN)).ok
    assert await due_emails(org) == []


async def test_a_sign_in_with_the_desktop_app_is_emailed(org: Organization) -> None:
    page = await signed_out_browser(org).http.post(DESKTOP, data=ANN)
    assert (await signed_out_browser(org).http.get(desktop_path(page))).status_code == 303
    assert "New sign-in" in (await one(org)).subject


async def test_people_can_turn_account_emails_off(org: Organization) -> None:
    (await org["ann"].patch("/settings", enable_login_emails=False)).ok
    (await signed_out_browser(org).post("/sessions", **ANN)).ok
    (await org.nobody.post("/fetch_api_key", **ANN)).ok
    assert await due_emails(org) == []


async def test_new_users_are_not_emailed_about_their_sign_in(
    org: Organization, clock: TestClock
) -> None:
    sent = {"email": "zoe@example.com", "full_name": "Zoe", "password": PASSWORD}
    (await org["ann"].post("/users", **sent)).ok
    (
        await signed_out_browser(org).post(
            "/sessions", username="zoe@example.com", password=PASSWORD
        )
    ).ok
    assert await due_emails(org) == []


@pytest.mark.parametrize("address", ["iris@cafe.example", "iris@chat.invalid"])
async def test_without_a_readable_address_no_email_is_sent(org: Organization, address: str) -> None:
    (await org["ann"].patch(f"/users/{org['ben'].user_id}", new_email=address)).ok
    await due_emails(org)
    await set_password(org, "ben")
    (await signed_out_browser(org).post("/sessions", username=address, password=PASSWORD)).ok
    assert await due_emails(org) == []


# Account changes


async def test_a_changed_password_is_emailed(org: Organization) -> None:
    (await org["ann"].patch("/settings", **NEW)).ok
    assert "was changed by someone who knew the old one" in (await one(org)).text


async def test_a_changed_key_is_emailed(org: Organization) -> None:
    (await org["ann"].post("/users/me/api_key/regenerate")).ok
    assert "A new API key" in (await one(org)).text
    (await org["ben"].post(f"/bots/{org['robo'].user_id}/api_key/regenerate")).ok
    assert await due_emails(org) == []


async def test_a_new_agent_key_is_emailed(org: Organization) -> None:
    (await org["ann"].post("/agents", name="Helper")).ok
    letter = await one(org)
    assert "New key" in letter.subject
    assert "Helper" in letter.text


async def test_an_address_changed_by_an_administrator_is_emailed_to_the_old_one(
    org: Organization,
) -> None:
    path = f"/users/{org['ben'].user_id}"
    (await org["ann"].patch(path, new_email="benjamin@example.com")).ok
    assert "benjamin@example.com" in (await one(org, "ben@example.com")).text
    (await org["ann"].patch(path, new_email="Benjamin@example.com")).ok
    assert await due_emails(org) == []


async def test_emails_are_in_the_account_s_language(org: Organization) -> None:
    (await org["ann"].patch("/settings", default_language="es")).ok
    (await signed_out_browser(org).post("/sessions", **ANN)).ok
    letter = await one(org)
    assert "Nuevo inicio de sesión" in letter.subject
    assert "Hola, Ann:" in letter.text
    assert '<html lang="es">' in letter.html
    (await org["ann"].patch("/settings", **NEW)).ok
    assert "contraseña" in (await one(org)).text
    (await org["ann"].post("/agents", name="Ayudante")).ok
    assert "revocarla" in (await one(org)).text
    (await org["ann"].post("/users/me/api_key/regenerate")).ok
    assert "clave de API" in (await one(org)).text


async def test_emails_to_people_without_an_account_are_in_the_organization_s_language(
    org: Organization,
) -> None:
    (await org["ann"].patch("/realm", default_language="pt-br")).ok
    form = {"invite_as": 400, "invite_expires_in_minutes": 60, "stream_ids": []}
    (await org["ann"].post("/invites", invitee_emails="dora@example.com", **form)).ok
    letter = await one(org, "dora@example.com")
    assert letter.subject == "Ann convidou você para Example"
    assert '<html lang="pt">' in letter.html
    assert re.search(r"expira em \d+ de [a-zç]+ de 20\d\d, \d\d:\d\d UTC", letter.text)
    assert "Ou copie este link no seu navegador: http" in letter.html


# Password confirmation


def acts(org: Organization) -> list[tuple[str, str, dict[str, object]]]:
    """Actions for which a stolen cookie must not be enough."""
    ann, ben = org["ann"].user_id, org["ben"].user_id
    return [
        ("POST", "/users/me/api_key/regenerate", {}),
        ("POST", "/agents", {"name": "Helper"}),
        ("PATCH", "/settings", {"email": "anna@example.com"}),
        ("PATCH", f"/users/{ben}", {"new_email": "benjamin@example.com"}),
        ("POST", f"/bots/{org['robo'].user_id}/api_key/regenerate", {}),
        ("PATCH", f"/users/{ben}", {"role": 100}),
        ("DELETE", f"/users/{ann}", {}),
        ("DELETE", f"/users/{ben}", {}),
        ("DELETE", f"/users/{ben}", {"actions": {"delete_profile": True}}),
        ("DELETE", "/users/me", {}),
        ("POST", "/realm/deactivate", {}),
    ]


async def test_a_browser_must_confirm_the_password_after_a_while(
    org: Organization, clock: TestClock
) -> None:
    browser = await signed_in_browser(org)
    clock.ahead += LATER
    before = org.node.state.seq
    for method, path, sent in acts(org):
        reply = await browser.request(method, path, **sent)
        reply.refused("PASSWORD_CONFIRMATION_REQUIRED", 403)
    assert org.node.state.seq == before
    # Other actions continue, and so do those that include the password.
    (await browser.patch("/settings", full_name="Anna", email="ann@example.com")).ok
    (await browser.patch(f"/users/{org['ben'].user_id}", full_name="Benno")).ok
    (await browser.post("/sessions/confirm", password="not it at all")).refused()
    (await browser.post("/users/me/api_key/regenerate")).refused(
        "PASSWORD_CONFIRMATION_REQUIRED", 403
    )
    (await browser.post("/sessions/confirm", password=PASSWORD)).ok
    (await browser.post("/users/me/api_key/regenerate")).ok
    clock.ahead += LATER
    (await browser.patch("/settings", **NEW)).ok
    (await browser.post("/users/me/api_key/regenerate")).ok


async def test_another_browser_must_confirm_by_itself(org: Organization, clock: TestClock) -> None:
    one, other = await signed_in_browser(org), await signed_in_browser(org)
    clock.ahead += LATER
    (await one.post("/sessions/confirm", password=PASSWORD)).ok
    (await other.post("/users/me/api_key/regenerate")).refused(
        "PASSWORD_CONFIRMATION_REQUIRED", 403
    )


async def test_a_program_with_a_key_need_not_confirm(org: Organization, clock: TestClock) -> None:
    clock.ahead += LATER
    (await org["ann"].patch("/settings", email="anna@example.com")).ok
    (await org["ann"].post("/sessions/confirm", password=PASSWORD)).ok
    (await org["ann"].post("/users/me/api_key/regenerate")).ok


async def test_password_confirmation_can_be_disabled(config: Config, clock: TestClock) -> None:
    never = msgspec.structs.replace(config, confirm_password_minutes=0)
    async with new_organization(never, clock=clock) as org:
        browser = await signed_in_browser(org)
        clock.ahead += 20 * 86400
        send_csrf_token(browser)
        (await browser.post("/users/me/api_key/regenerate")).ok
