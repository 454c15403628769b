"""Signing in with a real LDAP directory, and following it."""

import asyncio
import io
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from PIL import Image

from tertulia.app.sign_in_tables import methods_from
from tertulia.identity import ldap
from tertulia.identity.ldap import Directories, DirectoryDown
from tertulia.jobs import directories
from tertulia.jobs.directories import DirectoryFollower, TooManyGone
from tertulia.model.users import Role, User
from tertulia.service.config import Config
from tertulia.service.directory_methods import LdapMethod
from tertulia.service.files import pictures
from tertulia.service.node import Caller
from tests.browsers import set_password, signed_out_browser
from tests.emails import no_email_job
from tests.ldap_server import BASE, ROOT, ROOT_PASSWORD, LdapServer, ldap_server
from tests.support import PASSWORD, Newcomer, Organization, Person, Reply, new_organization
from tests.tls import Authority, trust_anew
from tests.wire.test_app_sign_in import (
    DESKTOP,
    MOBILE,
    decoded_key,
    desktop_path,
    mobile_result,
)

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

PEOPLE = f"ou=people,{BASE}"
STAFF = f"cn=staff-bar,ou=groups,{BASE}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Authority, LdapServer]]:
    place = tmp_path_factory.mktemp("slapd")
    authority = Authority(place)
    with ldap_server(authority, place) as server:
        june = server.add_person("june", cn="June Park", jpegPhoto=picture("red"))
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


@pytest.fixture
def add_person(server: LdapServer) -> Iterator[Callable[..., str]]:
    """`LdapServer.add_person` for the duration of a test."""
    made = list[str]()

    def add(uid: str, **attributes: Any) -> str:
        made.append(server.add_person(uid, **attributes))
        return made[-1]

    yield add
    for dn in made:
        server.change("delete", dn)


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
        sync_minutes=0,  # Tests follow the directory themselves.
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
    """A password is sent only over an encrypted connection to a trusted server."""
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
            # The organization's own job may still be syncing the previous data, or may just have
            # begun.
            while org.node.state.users[lou].is_active or org.node.state.groups[group.id].members:
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


def picture(color: str, kind: str = "JPEG") -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (64, 64), color).save(made, kind)
    return made.getvalue()


async def test_the_sync_brings_people_back_whom_it_deactivated(
    company: Company, add_person: Callable[..., str]
) -> None:
    org, server = company.org, company.server
    follower = DirectoryFollower(org.node, method_of(server.table()))
    ids, people = {}, []
    for name in ("mia", "noa", "ola"):
        add_person(name)
        fetched = (await company.fetch(name, f"{name}-secret")).ok
        ids[name] = fetched["user_id"]
        people.append(Person(org.http, ids[name], fetched["email"], fetched["api_key"]))

    def active() -> set[str]:
        return {name for name in ids if org.node.state.users[ids[name]].is_active}

    (await org["ann"].delete(f"/users/{ids['noa']}")).ok
    for name in ("mia", "ola"):
        server.change("modify_dn", f"uid={name},{PEOPLE}", f"uid={name}", True, f"ou=groups,{BASE}")
    await follower.once()
    assert active() == set()
    for person in people:
        assert (await person.get("/users/me")).status == 401, "keys end, too"
    # An administrator's decision overrides the sync's.
    (await org["ann"].post(f"/users/{ids['ola']}/reactivate")).ok
    (await org["ann"].delete(f"/users/{ids['ola']}")).ok
    for name in ("mia", "ola"):
        dn = f"uid={name},ou=groups,{BASE}"
        server.change("modify_dn", dn, f"uid={name}", True, PEOPLE)
    old_key = org.node.state.credentials[ids["mia"]].key_digest
    await follower.once()
    assert active() == {"mia"}
    assert org.node.state.credentials[ids["mia"]].key_digest != old_key


async def test_names_and_pictures_follow_the_directory(
    company: Company, add_person: Callable[..., str]
) -> None:
    org, server = company.org, company.server
    follower = DirectoryFollower(org.node, method_of(server.table()))
    dn = add_person("pia", jpegPhoto=picture("red"))
    user_id = (await company.fetch("pia", "pia-secret")).ok["user_id"]

    def user() -> User:
        return org.node.state.users[user_id]

    async def followed(**changes: Any) -> User:
        server.change("modify", dn, {k: [("MODIFY_REPLACE", [v])] for k, v in changes.items()})
        # The directory's times are in whole seconds.
        follower._looked_at.clear()
        await follower.once()
        return user()

    # The directory can change these even if the organization doesn't let anyone change them.
    await org.change_realm(avatar_changes_disabled=True, name_changes_disabled=True)
    red = user().avatar_file
    assert red
    blue = (await followed(cn="Pia Berg", jpegPhoto=picture("blue"))).avatar_file
    assert (user().full_name, blue != red) == ("Pia Berg", True)
    assert not list(org.node.config.data_path.rglob(f"{red}*")), "the old picture is deleted"
    version = user().avatar_version
    assert (await followed(sn="Berg")).avatar_version == version
    # A picture that isn't an image.
    assert (await followed(jpegPhoto=b"none")).avatar_version == version
    # Someone who uploaded another picture keeps it.
    await org.change_realm(avatar_changes_disabled=False)
    await pictures.change_avatar(Caller(node=org.node, user_id=user_id), picture("green"))
    own = user().avatar_file
    assert (await followed(jpegPhoto=picture("black"))).avatar_file == own


async def test_a_changed_address_follows_the_directory(
    company: Company, add_person: Callable[..., str]
) -> None:
    org, server = company.org, company.server
    follower = DirectoryFollower(org.node, method_of(server.table()))
    dn = add_person("ola")
    user_id = (await company.fetch("ola", "ola-secret")).ok["user_id"]

    async def followed(address: str) -> str:
        server.change("modify", dn, {"mail": [("MODIFY_REPLACE", [address])]})
        await follower.once()
        return org.node.state.users[user_id].address

    assert await followed("ola.berg@example.com") == "ola.berg@example.com"
    assert (await company.fetch("ola", "ola-secret")).ok["user_id"] == user_id
    # An address of another account, and an invalid one, aren't copied.
    for address in ("kai@example.com", "ANN@example.com", "none"):
        assert await followed(address) == "ola.berg@example.com"
    # An address that the organization doesn't allow isn't copied either.
    await org["ann"].post("/realm/domains", domain="example.com", allow_subdomains=False)
    await org.change_realm(emails_restricted_to_domains=True)
    assert await followed("ola@example.org") == "ola.berg@example.com"
    assert await followed("ola@example.com") == "ola@example.com"


async def test_both_apps_sign_in_through_the_form(company: Company) -> None:
    org, sent = company.org, {"username": "kai", "password": "kai-secret"}
    result = mobile_result(await signed_out_browser(org).http.post(MOBILE, data=sent))
    assert decoded_key(result["otp_encrypted_api_key"]) == org["kai"].api_key
    app = signed_out_browser(org)
    page = await signed_out_browser(org).http.post(DESKTOP, data=sent)
    assert (await app.http.get(desktop_path(page))).status_code == 303
    assert (await app.get("/users/me")).ok["user_id"] == org["kai"].user_id


async def test_a_reusable_invitation_counts_in_the_form(
    company: Company, add_person: Callable[..., str]
) -> None:
    org = company.org
    add_person("rui")
    invited = {"invite_as": 600, "stream_ids": []}
    made = (await org["ann"].post("/invites/multiuse", **invited)).ok
    token = made["invite_link"].rstrip("/").rpartition("/")[2]
    browser = signed_out_browser(org)
    sent = {"username": "rui", "password": "rui-secret"}
    assert (await browser.http.post(f"/login?invitation={token}", data=sent)).status_code == 303
    user = org.node.state.user_with_address("rui@example.com")
    assert user is not None
    assert user.role is Role.GUEST
    # The role stays, although the directory doesn't give it.
    assert (await company.fetch("rui", "rui-secret")).ok
    assert org.node.state.users[user.id].role is Role.GUEST


async def test_pictures_are_read_in_rounds(
    company: Company, add_person: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    org, server = company.org, company.server
    monkeypatch.setattr(directories, "PICTURES", 2)
    monkeypatch.setattr(directories, "PICTURE_BATCH", 1)
    names = ("rea", "ria", "roa")
    for name in names:
        dn = add_person(name)
        (await company.fetch(name, f"{name}-secret")).ok
        server.change("modify", dn, {"jpegPhoto": [("MODIFY_REPLACE", [picture("red")])]})
    follower = DirectoryFollower(org.node, method_of(server.table()))
    await follower.once()
    assert follower.has_more
    await follower.once()
    assert not follower.has_more
    shown = [org.node.state.user_with_address(f"{name}@example.com") for name in names]
    assert all(one is not None and one.avatar_source == "U" for one in shown)


async def test_the_directory_s_passwords_stay_when_the_organization_s_are_off(
    company: Company,
) -> None:
    org = company.org
    await set_password(org, "kai")
    await org.change_realm(password_sign_in=False)
    assert (await company.fetch("june", "june-secret")).ok
    (await company.fetch("kai@example.com", PASSWORD)).refused("AUTHENTICATION_FAILED", 401)
    assert (await company.fetch("kai", "kai-secret")).ok
    settings = (await org.nobody.get("/server_settings")).ok
    assert settings["authentication_methods"]["password"]
    assert not settings["authentication_methods"]["email"]
    assert not settings["require_email_format_usernames"]
    browser = signed_out_browser(org)
    page = (await browser.http.get("/login")).text
    assert "/reset" not in page
    sent = {"username": "june", "password": "june-secret"}
    assert (await browser.http.post("/login", data=sent)).status_code == 303


# Active Directory: its attributes, in OpenLDAP

ACTIVE_DIRECTORY = {
    "base": f"ou=staff,{BASE}",
    "people": "(&(objectClass=person)(objectClass=user))",
    "login": "(|(userPrincipalName={login})(mail={login})(sAMAccountName={login}))",
    "id_attribute": "objectGUID",
    "name_attribute": "displayName",
    "picture_attribute": "thumbnailPhoto",
}
NORMAL, DISABLED = 512, 514
NEVER = 9223372036854775807


def employee(name: str, **attributes: Any) -> dict[str, Any]:
    """Attributes of a person for `add_person`."""
    values: dict[str, Any] = {
        "sAMAccountName": name,
        "userPrincipalName": f"{name}@corp.example.com",
        "displayName": name.title(),
        "objectGUID": uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes_le,
        "userAccountControl": NORMAL,
        "accountExpires": NEVER,
    }
    return {"uid": name, "unit": "staff", "classes": ["user"], **values, **attributes}


def test_people_of_active_directory(server: LdapServer, add_person: Callable[..., str]) -> None:
    method = method_of(server.table(**ACTIVE_DIRECTORY))
    past, future = 116_444_736_000_000_000, 300_000_000_000_000_000
    add_person(**employee("tia", thumbnailPhoto=picture("red")))
    add_person(**employee("tom", userAccountControl=DISABLED))
    add_person(**employee("ted", accountExpires=past))
    add_person(**employee("tea", accountExpires=future))
    add_person(**employee("ty", accountExpires=0))
    for login in ("tia", "TIA", "tia@corp.example.com", "tia@example.com"):
        person = ldap.signed_in(method, login, "tia-secret")
        assert person is not None
        assert person.identity.subject == str(uuid.uuid5(uuid.NAMESPACE_DNS, "tia"))
        assert (person.identity.full_name, bool(person.picture)) == ("Tia", True)
    for login in ("tom", "ted"):
        assert ldap.signed_in(method, login, f"{login}-secret") is None
    active = {one.identity.full_name for one in ldap.people(method) if one.is_active}
    assert active == {"Tia", "Tea", "Ty"}
    (content,) = ldap.pictures(method, [f"uid=tia,ou=staff,{BASE}"])
    assert content == picture("red")
    assert ldap.pictures(method, [f"uid=gone,ou=staff,{BASE}"]) == [b""]


def test_more_people_than_one_answer_has_and_referrals(server: LdapServer) -> None:
    """The directory returns at most 1,000 entries per response, and referrals to other servers."""
    import ldap3

    method = method_of(server.table(**ACTIVE_DIRECTORY))
    names = [f"n{number}" for number in range(1100)]
    elsewhere = f"cn=elsewhere,ou=staff,{BASE}"
    connection = ldap3.Connection(server.url, ROOT, ROOT_PASSWORD, auto_bind=True)
    connection.add(
        elsewhere, ["referral", "extensibleObject"], {"ref": "ldap://127.0.0.1:1/dc=other"}
    )
    for name in names:
        values = {
            "cn": name,
            "sn": name,
            "mail": f"{name}@example.com",
            "objectGUID": uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes_le,
        }
        dn = f"uid={name},ou=staff,{BASE}"
        assert connection.add(dn, ["inetOrgPerson", "user"], values), connection.result
    try:
        assert len(ldap.people(method)) == len(names)
    finally:
        for name in names:
            connection.delete(f"uid={name},ou=staff,{BASE}")
        controls = [("2.16.840.1.113730.3.4.2", True, None)]  # The referral itself.
        connection.delete(elsewhere, controls=controls)
        connection.unbind()


def test_nested_groups_are_asked_for_by_active_directory_s_rule(
    server: LdapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenLDAP doesn't have the rule, so only the query is checked."""
    import ldap3

    asked = list[str]()
    original = ldap3.Connection.search

    def search(self: Any, base: str, condition: str, *arguments: Any, **more: Any) -> Any:
        asked.append(condition)
        return original(self, base, condition, *arguments, **more)

    monkeypatch.setattr(ldap3.Connection, "search", search)
    nested = {
        "group_base": f"ou=groups,{BASE}",
        "group_filter": "(member:1.2.840.113556.1.4.1941:={dn})",
        "groups": {"baristas": "staff-bar"},
    }
    person = ldap.signed_in(method_of(server.table(**nested)), "star*", "star*-secret")
    assert person is not None
    assert f"(member:1.2.840.113556.1.4.1941:=uid=star\\2a,{PEOPLE})" in asked


async def test_a_directory_that_lost_everyone_deactivates_nobody(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    (await company.fetch("june", "june-secret")).ok
    monkeypatch.setattr(directories, "FEW", 0)
    method = method_of(company.server.table(base=f"ou=groups,{BASE}"))
    with pytest.raises(TooManyGone, match="1 of 1"):
        await DirectoryFollower(company.org.node, method).once()
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
