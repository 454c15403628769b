"""Signing in with a real LDAP directory, and following it."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from PIL import Image

from tertulia.identity import ldap
from tertulia.identity.ldap import Directories, DirectoryDown, people
from tertulia.jobs import directories
from tertulia.jobs.directories import TooManyGone
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.service.sign_in_methods import LdapMethod, methods_from
from tests.browsers import set_password, signed_out_browser
from tests.emails import no_email_job
from tests.ldap_server import BASE, ROOT, ROOT_PASSWORD, LdapServer, ldap_server
from tests.support import PASSWORD, Newcomer, Organization, Reply, new_organization
from tests.tls import Authority, trust_anew

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

PEOPLE = f"ou=people,{BASE}"
STAFF = f"cn=staff-bar,ou=groups,{BASE}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Authority, LdapServer]]:
    place = tmp_path_factory.mktemp("slapd")
    authority = Authority(place)
    with ldap_server(authority, place) as server:
        picture = io.BytesIO()
        Image.new("RGB", (64, 64), "red").save(picture, "JPEG")
        june = server.add_person("june", cn="June Park", jpegPhoto=picture.getvalue())
        server.add_person("kai")
        server.add_person("star*", mail="star@example.com")
        server.add_person("twin1", mail="twin@example.com")
        server.add_person("twin2", mail="twin@example.com")
        server.change("add", STAFF, ["groupOfNames"], {"cn": "staff-bar", "member": june})
        yield authority, server


@pytest.fixture
def server(made: tuple[Authority, LdapServer], monkeypatch: pytest.MonkeyPatch) -> LdapServer:
    trust_anew(monkeypatch, file=made[0].file)
    return made[1]


def method_of(table: dict[str, Any]) -> LdapMethod:
    (method,) = methods_from([table])
    assert isinstance(method, LdapMethod)
    return method


@dataclass(frozen=True)
class Company:
    org: Organization
    server: LdapServer

    async def fetch(self, name: str, password: str) -> Reply:
        return await self.org.nobody.post("/fetch_api_key", username=name, password=password)


@pytest.fixture
async def company(config: Config, server: LdapServer) -> AsyncIterator[Company]:
    table = server.table(
        roles={"administrator": "admins"},
        groups={"baristas": "staff-bar"},
    )
    own = msgspec.structs.replace(config, sign_in=methods_from([table]))
    async with new_organization(own, others=(Newcomer("kai"),)) as org:
        await org["ann"].post("/user_groups/create", name="baristas", description="", members=[])
        yield Company(org, server)


async def test_people_sign_in_with_their_password_there(company: Company) -> None:
    org = company.org
    first = (await company.fetch("june", "june-secret")).ok
    user = org.node.state.user_with_address("june@example.com")
    assert user is not None
    assert (first["user_id"], user.full_name, user.avatar_source) == (user.id, "June Park", "U")
    (group,) = [one for one in org.node.state.groups if one.name == "baristas"]
    assert group.members == (user.id,)
    again = (await company.fetch("JUNE@example.com", "june-secret")).ok
    assert again["api_key"] == first["api_key"]
    # An account with the address is found, and one with a password here keeps it.
    assert (await company.fetch("kai", "kai-secret")).ok["user_id"] == org["kai"].user_id
    await set_password(org, "kai")
    assert (await company.fetch("kai@example.com", PASSWORD)).ok
    browser = signed_out_browser(org)
    page = await browser.http.get("/login")
    assert 'type="email"' not in page.text
    sent = {"username": "june", "password": "june-secret"}
    assert (await browser.http.post("/login", data=sent)).status_code == 303


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("june", "wrong"),
        ("june", ""),
        ("june", "kai-secret"),
        ("nobody", "june-secret"),
        ("twin@example.com", "twin1-secret"),
        # Injection
        ("*", "june-secret"),
        ("ju*", "june-secret"),
        ("june)(uid=*", "june-secret"),
        ("*)(uid=june", "june-secret"),
        ("x)(|(uid=june)", "june-secret"),
        ("june\0", "june-secret"),
        ("\\6aune", "june-secret"),
        ("admin", ROOT_PASSWORD),
        (ROOT, ROOT_PASSWORD),
    ],
)
async def test_others_do_not_get_in(server: LdapServer, name: str, password: str) -> None:
    method = method_of(server.table())
    assert await asyncio.to_thread(ldap.signed_in, method, name, password) is None


async def test_special_characters_stand_for_themselves(server: LdapServer) -> None:
    method = method_of(server.table())
    person = await asyncio.to_thread(ldap.signed_in, method, "star*", "star*-secret")
    assert person is not None
    assert person.identity.address == "star@example.com"


async def test_guesses_are_limited(company: Company) -> None:
    replies = [await company.fetch("june", f"guess-{number}") for number in range(11)]
    assert [one.status for one in replies] == [401] * 10 + [429]


async def test_starttls_and_certificates(
    made: tuple[Authority, LdapServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password never travels without an encrypted connection to a trusted server."""
    authority, server = made
    trust_anew(monkeypatch)
    for url in (server.secure_url, server.url):
        with pytest.raises(DirectoryDown):
            await asyncio.to_thread(ldap.signed_in, method_of(server.table(url=url)), "june", "x")
    trust_anew(monkeypatch, file=authority.file)
    plain = method_of(server.table(url=server.url))
    assert await asyncio.to_thread(ldap.signed_in, plain, "june", "june-secret")
    wrong_name = server.secure_url.replace("localhost", "127.0.0.2")
    method = method_of(server.table(url=wrong_name))
    with pytest.raises(DirectoryDown):
        await asyncio.to_thread(ldap.signed_in, method, "june", "june-secret")


@pytest.mark.parametrize(
    "more",
    [
        {"url": "ldaps://127.0.0.1:1"},
        {"bind_password": "wrong"},
        {"base": "ou=nowhere,dc=example,dc=com"},
        {"people": "(objectClass=person))"},
    ],
)
async def test_a_directory_that_cannot_be_asked(
    server: LdapServer, config: Config, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    table = {**server.table(), **more}
    own = msgspec.structs.replace(config, sign_in=methods_from([table]))
    with caplog.at_level(logging.WARNING), pytest.raises(DirectoryDown):
        await Directories(own).signed_in("june", "june-secret")
    assert "june-secret" not in caplog.text
    (line,) = [one for one in caplog.records if one.name == "tertulia.sign_in"]
    assert line.fields["reason"]  # type: ignore[attr-defined]


async def test_people_who_are_gone_are_deactivated(company: Company) -> None:
    org, server = company.org, company.server
    method = method_of(server.table(groups={"baristas": "staff-bar"}))
    server.add_person("lou")
    lou = (await company.fetch("lou", "lou-secret")).ok["user_id"]
    june = (await company.fetch("june", "june-secret")).ok["user_id"]
    (group,) = [one for one in org.node.state.groups if one.name == "baristas"]
    server.change("delete", f"uid=lou,{PEOPLE}")
    server.change("modify", STAFF, {"member": [("MODIFY_ADD", [f"uid=kai,{PEOPLE}"])]})
    server.change("modify", STAFF, {"member": [("MODIFY_DELETE", [f"uid=june,{PEOPLE}"])]})
    try:
        async with asyncio.timeout(60):
            # The organization's own job may be syncing what was there before.
            while org.node.state.users[lou].is_active:
                await directories.directory_sync(org.node, method).once()
                await asyncio.sleep(0.05)
    finally:
        server.change("modify", STAFF, {"member": [("MODIFY_ADD", [f"uid=june,{PEOPLE}"])]})
        server.change("modify", STAFF, {"member": [("MODIFY_DELETE", [f"uid=kai,{PEOPLE}"])]})
    state = org.node.state
    assert (state.users[lou].is_active, state.users[june].is_active) == (False, True)
    assert state.groups[group.id].members == ()
    (await company.fetch("lou", "lou-secret")).refused("AUTHENTICATION_FAILED", 401)
    assert state.users[org["ann"].user_id].is_active, "who never signed in with it stays"


async def test_a_directory_that_lost_everyone_deactivates_nobody(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    (await company.fetch("june", "june-secret")).ok
    monkeypatch.setattr(directories, "FEW", 0)
    method = method_of(company.server.table(base=f"ou=groups,{BASE}"))
    with pytest.raises(TooManyGone, match="1 of 1"):
        await directories.follow(company.org.node, method, await asyncio.to_thread(people, method))
    user = company.org.node.state.user_with_address("june@example.com")
    assert user is not None
    assert (user.is_active, user.role) == (True, Role.MEMBER)


def test_groups_that_only_the_groups_know(server: LdapServer) -> None:
    more = {"groups_attribute": "none", "group_base": f"ou=groups,{BASE}"}
    method = method_of(server.table(groups={"baristas": "staff-bar"}, **more))
    person = ldap.signed_in(method, "june", "june-secret")
    assert person is not None
    assert person.identity.groups == frozenset({"staff-bar"})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"url": "http://example.com"}, "url must be ldaps://host or ldap://host"),
        ({"people": "objectClass=person"}, "people must be a filter in parentheses"),
        ({"login": "(uid=june)"}, "login: it must contain {login}"),
        ({"bind_password": ""}, "bind_password is missing"),
        ({"base": ""}, "base can't be empty"),
    ],
)
def test_mistakes_are_said_at_the_start(more: dict[str, str], said: str) -> None:
    pytest.importorskip("ldap3")
    table = LdapServer("ldap://127.0.0.1", "ldaps://localhost").table(**more)
    with pytest.raises(ValueError) as raised:
        methods_from([table])
    assert str(raised.value) == f"sign_in (company): {said}"
