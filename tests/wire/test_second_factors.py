"""Second factors: setting them up, signing in with them, guessing them, and removing them."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyotp
import pytest

from tertulia.domain.accounts import second_factors
from tertulia.model.changes import CredentialChanged
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.wire.http import rate_limits
from tertulia.wire.http.errors import TooManyTries
from tests import postgres
from tests.browsers import (
    page_text,
    send_csrf_token,
    session_cookie,
    set_password,
    signed_in_browser,
    signed_out_browser,
)
from tests.emails import due_emails, no_email_job
from tests.nodes import cluster
from tests.support import (
    PASSWORD,
    Newcomer,
    Organization,
    Person,
    TestClock,
    new_organization,
    rows,
)

pytestmark = pytest.mark.usefixtures("no_logged_errors", no_email_job.__name__)

FACTORS = "/users/me/second_factors"
BEN = {"username": "ben@example.com", "password": PASSWORD}
LATER = 16 * 60


@pytest.fixture
def clock() -> TestClock:
    return TestClock(stopped_at=1_800_000_000)


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    others = (Newcomer("ben"), Newcomer("adam", Role.ADMINISTRATOR), Newcomer("robo", owner="ben"))
    async with new_organization(config, clock=clock, others=others) as org:
        await set_password(org, "ben")
        yield org


async def set_up(person: Person, clock: TestClock, name: str = "") -> tuple[pyotp.TOTP, list[str]]:
    """Set up an authenticator app of the person. Return it, with the recovery codes."""
    begun = (await person.post(f"{FACTORS}/totp", name=name)).ok
    app = pyotp.parse_uri(begun["otpauth_url"])
    assert isinstance(app, pyotp.TOTP)
    assert app.secret == begun["secret"]
    done = (await person.post(f"{FACTORS}/totp/confirm", code=app.at(int(clock())))).ok
    clock.ahead += 30
    return app, done["recovery_codes"]


async def kinds_of_due_emails(org: Organization) -> list[str]:
    """Return the subjects of emails that are due."""
    return [email.subject for email in await due_emails(org)]


async def test_an_app_is_set_up_and_listed(org: Organization, clock: TestClock) -> None:
    ben = org["ben"]
    begun = (await ben.post(f"{FACTORS}/totp", name=" Phone ")).ok
    assert begun["qr_code"].startswith("data:image/svg+xml")
    assert "issuer=" in begun["otpauth_url"]
    nothing = {"second_factors": [], "recovery_codes_left": 0}
    assert (await ben.get(FACTORS)).ok.items() >= nothing.items()
    (await org.nobody.post("/fetch_api_key", **BEN)).ok
    app = pyotp.TOTP(begun["secret"])
    wrong = await ben.post(f"{FACTORS}/totp/confirm", code="000000")
    wrong.refused("AUTHENTICATION_FAILED", 401)
    code = app.at(int(clock()))
    codes = (await ben.post(f"{FACTORS}/totp/confirm", code=f"{code[:3]} {code[3:]}")).ok
    assert len(set(codes["recovery_codes"])) == 10
    listed = (await ben.get(FACTORS)).ok
    assert listed["recovery_codes_left"] == 10
    assert listed["second_factors"] == [
        {
            "id": begun["id"],
            "kind": "totp",
            "name": "Phone",
            "created_at": int(clock()),
            "last_used_at": None,
        }
    ]
    assert (await org["ann"].get(f"/users/{ben.user_id}/second_factors")).ok == listed
    (await ben.get(f"/users/{org['ann'].user_id}/second_factors")).refused()
    (email,) = await due_emails(org)
    assert (email.to, "second factor was added" in email.text) == ("ben@example.com", True)
    # It can't be confirmed twice.
    (await ben.post(f"{FACTORS}/totp/confirm", code=code)).refused()


async def test_secrets_are_not_stored_readably(org: Organization, clock: TestClock) -> None:
    app, codes = await set_up(org["ben"], clock)
    state = org.node.state
    stored = repr([*state.second_factors, *state.recovery_codes])
    assert app.secret not in stored
    assert not any(code in stored or code.replace("-", "") in stored for code in codes)


async def test_setting_up_must_be_finished_within_an_hour(
    org: Organization, clock: TestClock
) -> None:
    ben = org["ben"]
    first = pyotp.TOTP((await ben.post(f"{FACTORS}/totp")).ok["secret"])
    second = pyotp.TOTP((await ben.post(f"{FACTORS}/totp")).ok["secret"])
    of_first = await ben.post(f"{FACTORS}/totp/confirm", code=first.at(int(clock())))
    of_first.refused("AUTHENTICATION_FAILED", 401)
    clock.ahead += second_factors.PENDING_SECONDS
    of_second = await ben.post(f"{FACTORS}/totp/confirm", code=second.at(int(clock())))
    of_second.refused()


async def test_bots_have_no_second_factors(org: Organization) -> None:
    (await org["robo"].post(f"{FACTORS}/totp")).refused("UNAUTHORIZED_PRINCIPAL")


@rows("name", ["x" * 41, "a\nb", "a\u200bb"])
async def test_invalid_names_are_refused(org: Organization, name: str) -> None:
    (await org["ben"].post(f"{FACTORS}/totp", name=name)).refused()


@rows("path", ["/fetch_api_key", "/sessions"])
async def test_a_password_alone_is_not_enough(
    org: Organization, clock: TestClock, path: str
) -> None:
    ben = org["ben"]
    for factor in (await ben.get(FACTORS)).ok["second_factors"]:
        (await ben.delete(f"{FACTORS}/{factor['id']}")).ok
    app, codes = await set_up(ben, clock)
    nobody = signed_out_browser(org)
    refused = (await nobody.post(path, **BEN)).refused("SECOND_FACTOR_REQUIRED", 403)
    assert "'code'" in refused["msg"]
    wrong = await nobody.post(path, **BEN, code="12345")
    wrong.refused("AUTHENTICATION_FAILED", 401)
    # Without the password, the code has no effect.
    unknown = await nobody.post(path, username=ben.email, password="no", code=app.now())
    unknown.refused("AUTHENTICATION_FAILED", 401)
    code = app.at(int(clock()))
    (await nobody.post(path, **BEN, code=code)).ok
    (await nobody.post(path, **BEN, code=code)).refused("AUTHENTICATION_FAILED", 401)
    (await nobody.post(path, **BEN, code=codes[0].upper())).ok
    (await nobody.post(path, **BEN, code=codes[0])).refused("AUTHENTICATION_FAILED", 401)
    listed = (await ben.get(FACTORS)).ok
    assert listed["recovery_codes_left"] == 9
    assert listed["second_factors"][0]["last_used_at"] == int(clock())


@rows(("seconds", "works"), [(-61, False), (-30, True), (0, True), (30, True), (61, False)])
async def test_clocks_may_differ_by_a_code(
    org: Organization, clock: TestClock, seconds: int, works: bool
) -> None:
    clock.ahead += 600
    secret = pyotp.random_base32()
    sealed = org.node.vault.sealed(secret)
    user_id = org["ben"].user_id
    factor = await org.node.log.submit(user_id, second_factors.prepare_totp, sealed, "")
    new = second_factors.NewCodes(digests=("x",), site="http://chat.test")
    await org.node.log.submit(user_id, second_factors.confirm_totp, factor.id, 0, new)
    code = pyotp.TOTP(secret).at(int(clock()) + seconds)
    reply = await org.nobody.post("/fetch_api_key", **BEN, code=code)
    assert (reply.status == 200) is works
    await org.node.log.submit(user_id, second_factors.remove, factor.id, "http://chat.test")


async def test_an_older_code_does_not_work_after_a_newer_one(
    org: Organization, clock: TestClock
) -> None:
    app, _ = await set_up(org["ben"], clock)
    older, newer = app.at(int(clock())), app.at(int(clock()) + 30)
    (await org.nobody.post("/fetch_api_key", **BEN, code=newer)).ok
    reply = await org.nobody.post("/fetch_api_key", **BEN, code=older)
    reply.refused("AUTHENTICATION_FAILED", 401)


async def test_guessing_codes_is_blocked_and_the_person_is_warned(
    org: Organization, clock: TestClock
) -> None:
    app, codes = await set_up(org["ben"], clock)
    await due_emails(org)
    replies = [
        await org.nobody.post("/fetch_api_key", **BEN, code=f"{number:06}")
        for number in range(rate_limits.FACTOR_TRIES + 1)
    ]
    assert [reply.status for reply in replies] == [401] * rate_limits.FACTOR_TRIES + [429]
    assert int(replies[-1].headers["Retry-After"]) > 0
    # The right code doesn't help then.
    right = await org.nobody.post("/fetch_api_key", **BEN, code=app.at(int(clock())))
    right.refused("RATE_LIMIT_HIT", 429)
    (email,) = await due_emails(org)
    assert (email.to, "wrong verification codes" in email.text) == ("ben@example.com", True)
    assert len(codes) == 10


async def test_codes_cannot_be_guessed_from_many_networks(
    org: Organization, clock: TestClock
) -> None:
    owner = signed_out_browser(org)
    app, codes = await set_up(org["ben"], clock)
    (await owner.post("/sessions", **BEN, code=app.at(int(clock())))).ok
    clock.ahead += 60
    limits = org.node.sign_in_limits
    user_id = org["ben"].user_id
    tried = 0
    for number in range(100):
        try:
            limits.require_factor(f"203.0.113.{number}", user_id, None, is_short=True)
        except TooManyTries:
            break
        tried += 1
    assert tried == rate_limits.FACTOR_TRIES_FROM_ANYWHERE
    blocked = await org.nobody.post("/fetch_api_key", **BEN, code=app.at(int(clock())))
    blocked.refused("RATE_LIMIT_HIT", 429)
    # The person can still sign in, with a browser that was used before or a recovery code.
    (await owner.post("/sessions", **BEN, code=app.at(int(clock())))).ok
    (await org.nobody.post("/fetch_api_key", **BEN, code=codes[3])).ok


async def test_recovery_codes_are_replaced(org: Organization, clock: TestClock) -> None:
    ben = org["ben"]
    (await ben.post(f"{FACTORS}/recovery_codes")).refused()
    _, codes = await set_up(ben, clock)
    new = (await ben.post(f"{FACTORS}/recovery_codes")).ok["recovery_codes"]
    assert not set(new) & set(codes)
    old = await org.nobody.post("/fetch_api_key", **BEN, code=codes[0])
    old.refused("AUTHENTICATION_FAILED", 401)
    (await org.nobody.post("/fetch_api_key", **BEN, code=new[0])).ok
    subjects = await kinds_of_due_emails(org)
    assert sorted(one.split(" ")[0] for one in subjects) == ["A", "New", "Two-step"]
    # A second app keeps the codes.
    _, more = await set_up(ben, clock, "Tablet")
    assert more == []
    assert (await ben.get(FACTORS)).ok["recovery_codes_left"] == 9


async def test_a_removed_factor_is_no_longer_needed(org: Organization, clock: TestClock) -> None:
    ben = org["ben"]
    _, codes = await set_up(ben, clock)
    await due_emails(org)
    (factor,) = (await ben.get(FACTORS)).ok["second_factors"]
    (await org["ann"].delete(f"{FACTORS}/{factor['id']}")).refused(status=404)
    (await ben.delete(f"{FACTORS}/{factor['id']}")).ok
    (await org.nobody.post("/fetch_api_key", **BEN)).ok
    assert (await ben.get(FACTORS)).ok["recovery_codes_left"] == 0
    (email,) = await due_emails(org)
    assert "removed" in email.subject
    # The next app gets new codes.
    _, new = await set_up(ben, clock)
    assert len(new) == 10
    assert not set(new) & set(codes)


@rows(
    ("who", "whose", "works"),
    [
        ("adam", "ben", True),
        ("ann", "ben", True),
        ("adam", "ann", False),
        ("ben", "adam", False),
    ],
)
async def test_administrators_remove_factors(
    org: Organization, clock: TestClock, who: str, whose: str, works: bool
) -> None:
    await set_up(org[whose], clock)
    path = f"/users/{org[whose].user_id}/second_factors"
    reply = await org[who].delete(path)
    assert (reply.status == 200) is works
    assert bool((await org[whose].get(FACTORS)).ok["second_factors"]) is not works
    (await org["ann"].delete(path)).ok


async def test_a_stolen_session_changes_no_factor(org: Organization, clock: TestClock) -> None:
    app, codes = await set_up(org["ben"], clock)
    browser = signed_out_browser(org)
    (await browser.post("/sessions", **BEN, code=app.at(int(clock())))).ok
    send_csrf_token(browser)
    (factor,) = (await browser.get(FACTORS)).ok["second_factors"]
    clock.ahead += LATER
    acts: list[tuple[str, str]] = [
        ("POST", f"{FACTORS}/totp"),
        ("POST", f"{FACTORS}/totp/confirm"),
        ("POST", f"{FACTORS}/recovery_codes"),
        ("DELETE", f"{FACTORS}/{factor['id']}"),
    ]
    for method, path in acts:
        sent: dict[str, Any] = {"code": "1"} if path.endswith("confirm") else {}
        reply = await browser.request(method, path, **sent)
        refused = reply.refused("PASSWORD_CONFIRMATION_REQUIRED", 403)
        assert refused["proofs"] == ["password", "code"]
    (await browser.post("/sessions/confirm", code="000000")).refused("AUTHENTICATION_FAILED", 401)
    (await browser.post("/sessions/confirm", code=codes[1])).ok
    (await browser.delete(f"{FACTORS}/{factor['id']}")).ok


async def test_without_a_password_a_session_is_confirmed_by_code(
    org: Organization, clock: TestClock
) -> None:
    browser = await signed_in_browser(org, "ben")
    _, codes = await set_up(browser, clock)
    await org.change_realm(password_sign_in=False)
    clock.ahead += LATER
    refused = (await browser.post("/users/me/api_key/regenerate")).refused(
        "PASSWORD_CONFIRMATION_REQUIRED", 403
    )
    assert refused["proofs"] == ["code"]
    (await browser.post("/sessions/confirm", code=codes[0])).ok
    (await browser.post("/users/me/api_key/regenerate")).ok


async def test_a_deleted_account_s_factors_are_deleted(org: Organization, clock: TestClock) -> None:
    await set_up(org["ben"], clock)
    await org["ben"].post(f"{FACTORS}/totp")
    (await org["ann"].delete(f"/users/{org['ben'].user_id}", actions={"delete_profile": True})).ok
    assert not len(org.node.state.second_factors)
    assert not len(org.node.state.recovery_codes)


async def test_a_right_password_does_not_make_a_network_known(
    org: Organization, clock: TestClock
) -> None:
    # Otherwise, a sign-in by someone who knows the password wouldn't be reported.
    clock.ahead += 3600
    app, _ = await set_up(org["ben"], clock)
    await due_emails(org)
    (await org.nobody.post("/fetch_api_key", **BEN)).refused("SECOND_FACTOR_REQUIRED", 403)
    (await org.nobody.post("/fetch_api_key", **BEN, code=app.at(int(clock())))).ok
    assert any("New sign-in" in one for one in await kinds_of_due_emails(org))


# Pages


OTP = "0123456789abcdef" * 4


def step_in(page: httpx.Response) -> str:
    """Return the hidden field of the second step."""
    found = re.search(r'name="step" value="([^"]+)"', page.text)
    assert found, page.text
    return found[1]


async def first_step(browser: Person, **flow: str) -> str:
    page = await browser.http.post("/login", data={**BEN, **flow})
    assert page.status_code == 200
    assert "Two-step verification" in page_text(page)
    assert session_cookie(browser) is None
    return step_in(page)


async def test_the_page_asks_for_a_code(org: Organization, clock: TestClock) -> None:
    app, codes = await set_up(org["ben"], clock)
    browser = signed_out_browser(org)
    step = await first_step(browser, next="/#settings")
    wrong = await browser.http.post("/login/second-factor", data={"step": step, "code": "1"})
    assert (wrong.status_code, "The code is wrong" in page_text(wrong)) == (403, True)
    right = {"step": step_in(wrong), "code": app.at(int(clock()))}
    page = await browser.http.post("/login/second-factor", data=right)
    assert (page.status_code, page.headers["location"]) == (303, "/#settings")
    assert session_cookie(browser)
    # Neither the code nor the step alone sign in again.
    other = signed_out_browser(org)
    again = await other.http.post("/login/second-factor", data=right)
    assert again.status_code == 403
    of_code = await other.http.post("/login/second-factor", data={"code": codes[0]})
    assert (of_code.status_code, of_code.headers["location"]) == (303, "/login")
    assert session_cookie(other) is None


async def test_a_mobile_app_gets_its_key_after_the_code(
    org: Organization, clock: TestClock
) -> None:
    _, codes = await set_up(org["ben"], clock)
    browser = signed_out_browser(org)
    step = await first_step(browser, mobile_flow_otp=OTP)
    page = await browser.http.post("/login/second-factor", data={"step": step, "code": codes[0]})
    assert page.status_code == 302
    assert page.headers["location"].startswith("zulip://login?otp_encrypted_api_key=")


async def test_the_second_step_ends(org: Organization, clock: TestClock) -> None:
    _, codes = await set_up(org["ben"], clock)
    browser = signed_out_browser(org)
    late = {"step": await first_step(browser), "code": codes[0]}
    clock.ahead += 601
    page = await browser.http.post("/login/second-factor", data=late)
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    # A new password ends the step too.
    step = await first_step(browser)
    hashed = await org.node.vault.hash_password("another battery")
    kept = org.node.state.credentials[org["ben"].user_id]
    changed = msgspec.structs.replace(kept, password_hash=hashed)
    await org.do(CredentialChanged(credential=changed, same_key=True))
    page = await browser.http.post("/login/second-factor", data={"step": step, "code": codes[0]})
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert session_cookie(browser) is None


async def test_guessing_on_the_page_is_blocked(org: Organization, clock: TestClock) -> None:
    await set_up(org["ben"], clock)
    browser = signed_out_browser(org)
    guess = {"step": await first_step(browser), "code": "000000"}
    statuses = [
        (await browser.http.post("/login/second-factor", data=guess)).status_code
        for _ in range(rate_limits.FACTOR_TRIES + 1)
    ]
    assert statuses == [403] * rate_limits.FACTOR_TRIES + [429]


async def test_a_reset_password_is_not_enough(org: Organization, clock: TestClock) -> None:
    ben = org["ben"]
    app, _ = await set_up(ben, clock)
    node = org.node
    link = node.links.reset("", node.state.credentials[ben.user_id], int(clock()) + 100)
    browser = signed_out_browser(org)
    page = await browser.http.post(link, data={"password": "another battery staple"})
    assert session_cookie(browser) is None
    sent = {"step": step_in(page), "code": app.at(int(clock()))}
    page = await browser.http.post("/login/second-factor", data=sent)
    assert (page.status_code, bool(session_cookie(browser))) == (303, True)


# Second factors that the organization requires


REQUIRED = {"second_factor_required_for": "members", "second_factor_grace_days": 3}
DAY = 86400


async def test_only_owners_require_a_second_factor(org: Organization, clock: TestClock) -> None:
    (await org["adam"].patch("/realm", **REQUIRED)).refused("UNAUTHORIZED_PRINCIPAL")
    (await org["ann"].patch("/realm", **REQUIRED)).ok
    due = int(clock()) + 3 * DAY
    assert (await org["ben"].get(FACTORS)).ok["required_from"] == due
    await org.change_realm(second_factor_required_for="administrators")
    assert (await org["ben"].get(FACTORS)).ok["required_from"] is None
    assert (await org["adam"].get(FACTORS)).ok["required_from"] == due
    await org.change_realm(second_factor_required_for="everyone")
    clock.ahead += DAY
    late = await org.add("late")
    assert (await late.get(FACTORS)).ok["required_from"] == int(clock()) + 3 * DAY


async def test_people_are_reminded_then_have_to_set_it_up(
    org: Organization, clock: TestClock
) -> None:
    (await org["ann"].patch("/realm", **REQUIRED)).ok
    browser = signed_out_browser(org)
    page = await browser.http.post("/login?next=/%23x", data=BEN)
    assert (page.status_code, "in 3 days" in page_text(page)) == (200, True)
    assert 'href="/#x"' in page.text
    (await browser.get("/users/me")).ok
    (await org.nobody.post("/fetch_api_key", **BEN)).ok
    clock.ahead += 3 * DAY
    # The session has ended; the key still works.
    (await browser.get("/users/me")).refused("UNAUTHORIZED", 401)
    (await org["ben"].get("/users/me")).ok
    for path in ("/fetch_api_key", "/sessions"):
        refused = await org.nobody.post(path, **BEN)
        assert "requires" in refused.refused("SECOND_FACTOR_REQUIRED", 403)["msg"]
    browser = signed_out_browser(org)
    page = await browser.http.post("/login?next=/%23x", data=BEN)
    assert session_cookie(browser) is None
    assert "<svg" in page.text
    found = re.search(r"<code>([A-Z2-7 ]+)</code>", page.text)
    assert found
    app = pyotp.TOTP(found[1].replace(" ", ""))
    wrong = await browser.http.post("/login/set-up", data={"step": step_in(page), "code": "1"})
    assert (wrong.status_code, found[0] in wrong.text) == (403, True)
    right = {"step": step_in(wrong), "code": app.at(int(clock()))}
    page = await browser.http.post("/login/set-up", data=right)
    assert session_cookie(browser) is None
    codes = re.findall(r"\b[a-z2-7]{5}-[a-z2-7]{5}\b", page.text.partition("<pre>")[2])
    assert len(codes) == 10
    done = {"step": step_in(page), "done": "yes"}
    page = await browser.http.post("/login/set-up", data=done)
    assert (page.status_code, page.headers["location"]) == (303, "/#x")
    (await browser.get("/users/me")).ok
    # Neither ticket works again.
    for sent in (right, done, {**right, "done": "yes"}, {**done, "code": codes[0]}):
        other = signed_out_browser(org)
        page = await other.http.post("/login/set-up", data=sent)
        assert (page.status_code, page.headers["location"]) == (303, "/login")
    (await org.nobody.post("/fetch_api_key", **BEN, code=codes[0])).ok


async def test_a_reset_link_does_not_replace_setting_it_up(
    org: Organization, clock: TestClock
) -> None:
    (await org["ann"].patch("/realm", **REQUIRED)).ok
    clock.ahead += 4 * DAY
    node = org.node
    link = node.links.reset("", node.state.credentials[org["ben"].user_id], int(clock()) + 100)
    browser = signed_out_browser(org)
    page = await browser.http.post(link, data={"password": "another battery staple"})
    assert session_cookie(browser) is None
    assert "<svg" in page.text


async def test_new_members_set_it_up_first_without_days_of_grace(org: Organization) -> None:
    (await org["ann"].patch("/realm", **REQUIRED | {"second_factor_grace_days": 0})).ok
    link = (await org["ann"].post("/invites/multiuse")).ok["invite_link"]
    browser = signed_out_browser(org)
    sent = {
        "email": "zoe@example.com",
        "full_name": "Zoe Zander",
        "password": "another battery staple",
    }
    page = await browser.http.post(link.removeprefix("http://chat.test"), data=sent)
    assert org.node.state.user_with_address("zoe@example.com") is not None
    assert session_cookie(browser) is None
    assert "<svg" in page.text


async def test_a_session_with_a_factor_stays(org: Organization, clock: TestClock) -> None:
    browser = await signed_in_browser(org, "ben")
    await set_up(org["ben"], clock)
    await org.change_realm(**REQUIRED, second_factor_required_since=int(clock()))
    clock.ahead += 4 * DAY
    (await browser.get("/users/me")).ok


async def test_a_code_works_once_on_two_nodes(postgres_url: str, tmp_path: Path) -> None:
    with postgres.schema(postgres_url) as url:
        config = Config(
            data_dir=str(tmp_path / "data"), database_url=url, external_url="http://chat.test"
        )
        async with cluster(config, 2) as nodes:
            one, other = nodes.nodes
            clock = TestClock()
            app, codes = await set_up(one["ann"], clock)
            sent = {"username": "ann@example.com", "password": PASSWORD}
            # The other node may not have read the factor's entry yet.
            alone = await other.nobody.post("/fetch_api_key", **sent)
            alone.refused("SECOND_FACTOR_REQUIRED", 403)
            for code in (app.at(int(one.node.clock()) + 30), codes[0]):
                replies = await asyncio.gather(
                    *(
                        node.nobody.post("/fetch_api_key", **sent, code=code)
                        for node in (one, other)
                    )
                )
                assert sorted(reply.status for reply in replies) == [200, 401]
