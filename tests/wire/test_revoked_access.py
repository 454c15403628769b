"""What ends an account's API key, sessions, and waiting polls."""

import asyncio

import pytest

from tertulia.domain.accounts import sessions
from tests.browsers import signed_in_browser, signed_out_browser
from tests.emails import due_emails, link_path, no_email_job
from tests.support import PASSWORD, Organization, Reply, until

pytestmark = [
    pytest.mark.usefixtures("no_logged_errors"),
    pytest.mark.usefixtures(no_email_job.__name__),
]

NEW = "other good words"


async def polling(org: Organization) -> list["asyncio.Task[Reply]"]:
    """Waiting polls of ann's: with the key, and with a browser session."""
    tasks = []
    for person in (org["ann"], await signed_in_browser(org)):
        listener = await person.register()
        poll = person.get(
            "/events", queue_id=listener.queue_id, last_event_id=listener.last_event_id
        )
        tasks.append(asyncio.create_task(poll))
    await until(lambda: org.node.delivery.waiting == 2)
    return tasks


async def all_over(org: Organization, polls: list["asyncio.Task[Reply]"]) -> None:
    """Ann's key, session, and polls have ended."""
    by_key, by_session = [await poll for poll in polls]
    by_key.refused("INVALID_API_KEY", 401)
    by_session.refused("UNAUTHORIZED", 401)
    (await org["ann"].get("/users/me")).refused("INVALID_API_KEY", 401)
    other = org.node.vault.api_key(org.node.state.credentials[org["ann"].user_id])
    assert other != org["ann"].api_key
    org["ann"].api_key = other
    (await org["ann"].get("/users/me")).ok


async def test_a_password_reset_ends_key_and_sessions(org: Organization) -> None:
    polls = await polling(org)
    (await org["ann"].post("/users/me/android_gcm_reg_id", token="phone")).ok
    assert org.node.state.push_tokens.of_user.count(org["ann"].user_id) == 1
    await org.http.post("/reset", data={"email": "ann@example.com"})
    await org.node.log.catch_up()
    (letter,) = await due_emails(org)
    browser = signed_out_browser(org)
    await browser.http.post(link_path(letter), data={"password": NEW})
    await all_over(org, polls)
    assert org.node.state.push_tokens.of_user.count(org["ann"].user_id) == 0
    (await browser.get("/users/me")).ok
    (letter,) = await due_emails(org)
    assert "all browsers and apps" in letter.text


async def test_an_operator_s_new_password_ends_key_and_sessions(org: Organization) -> None:
    polls = await polling(org)
    node = org.node
    hashed = await node.vault.hash_password(NEW)
    await node.log.submit(
        None,
        sessions.replace_password,
        org["ann"].user_id,
        hashed,
        node.vault.new_key(),
        "http://chat.test",
    )
    await all_over(org, polls)
    (await signed_out_browser(org).post("/sessions", username="ann@example.com", password=NEW)).ok
    (letter,) = await due_emails(org)
    assert (letter.to, "was reset" in letter.text) == ("ann@example.com", True)


async def test_signing_out_everywhere_ends_key_and_sessions(org: Organization) -> None:
    polls = await polling(org)
    node = org.node
    ended = await node.log.submit(
        None, sessions.end_access, org["ann"].user_id, node.vault.new_key()
    )
    assert ended == 1
    await all_over(org, polls)
    (
        await signed_out_browser(org).post(
            "/sessions", username="ann@example.com", password=PASSWORD
        )
    ).ok


@pytest.mark.parametrize("who", ["ben", "robo"])
async def test_a_key_does_not_return_with_a_reactivated_account(
    org: Organization, who: str
) -> None:
    path = f"/users/{org[who].user_id}"
    (await org["ann"].delete(path)).ok
    (await org[who].get("/users/me")).refused("USER_DEACTIVATED", 401)
    (await org["ann"].post(f"{path}/reactivate")).ok
    (await org[who].get("/users/me")).refused("INVALID_API_KEY", 401)
    org.person_of(who, org.node.state.users[org[who].user_id])
    (await org[who].get("/users/me")).ok
    # Without a reactivation, the key isn't replaced.
    (await org["ann"].post(f"{path}/reactivate")).ok
    (await org[who].get("/users/me")).ok


async def test_changing_one_s_own_password_keeps_the_key(org: Organization) -> None:
    own = await signed_in_browser(org)
    (await own.patch("/settings", old_password=PASSWORD, new_password=NEW)).ok
    (await org["ann"].get("/users/me")).ok
