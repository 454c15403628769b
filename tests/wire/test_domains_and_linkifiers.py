"""Organization configuration: domains, linkifiers, and playgrounds."""

from typing import Any

import pytest
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # without types

from tertulia.domain import names as names
from tertulia.domain.organization import linkifiers
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, new_organization, open_organization, rows
from tests.wire.sample_organization import Data

KNOWS_LINKIFIERS = {"linkifier_url_template": True}

# Domains


async def test_a_domain_is_added_changed_and_removed(org: Organization) -> None:
    ann, ben = org["ann"], await org["ben"].register()
    assert ben.data["realm_domains"] == []
    new = (await ann.post("/realm/domains", domain=" Example.COM ", allow_subdomains=False)).ok
    assert new["new_domain"] == [1, "example.com"]
    assert (await ann.patch("/realm/domains/example.com", allow_subdomains=True)).ok
    shown = [{"domain": "example.com", "allow_subdomains": True}]
    assert (await org["ben"].get("/realm/domains")).ok["domains"] == shown
    assert (await org["ben"].register()).data["realm_domains"] == shown
    assert (await ann.delete("/realm/domains/EXAMPLE.com")).ok
    assert (await org["ben"].get("/realm/domains")).ok["domains"] == []
    added, changed, removed = [without_id(event) for event in await ben.events()]
    before = {"domain": "example.com", "allow_subdomains": False}
    assert added == {"type": "realm_domains", "op": "add", "realm_domain": before}
    assert changed == {"type": "realm_domains", "op": "change", "realm_domain": shown[0]}
    assert removed == {"type": "realm_domains", "op": "remove", "domain": "example.com"}


def without_id(event: Data) -> Data:
    return {name: value for name, value in event.items() if name != "id"}


@rows(
    "domain",
    [
        *(
            "",
            " ",
            "example",
            ".example.com",
            "example.com.",
            "a..b",
            "-a.com",
            "a-.com",
            "a_b.com",
        ),
        *("@example.com", "ann@example.com", "exam ple.com", "x" * 64 + ".com", "http://a.com"),
        ".".join(["abcdefghi"] * 26),
    ],
)
async def test_an_invalid_domain_is_refused(readonly_org: Organization, domain: str) -> None:
    (
        await readonly_org["ann"].post("/realm/domains", domain=domain, allow_subdomains=True)
    ).refused()


async def test_a_domain_is_added_once(org: Organization) -> None:
    assert (await org["ann"].post("/realm/domains", domain="a.com", allow_subdomains=False)).ok
    (await org["ann"].post("/realm/domains", domain="A.com", allow_subdomains=True)).refused()
    ben = await org["ben"].register()
    assert (await org["ann"].patch("/realm/domains/a.com", allow_subdomains=False)).ok
    assert await ben.events() == []


async def test_an_unknown_domain_is_refused(readonly_org: Organization) -> None:
    (await readonly_org["ann"].patch("/realm/domains/a.com", allow_subdomains=True)).refused()
    (await readonly_org["ann"].delete("/realm/domains/a.com")).refused()


@rows("role", [Role.ADMINISTRATOR, Role.MEMBER, Role.GUEST])
async def test_owners_manage_domains(org: Organization, role: Role) -> None:
    own = f"{role.name.lower()}.com"
    assert (await org["ann"].post("/realm/domains", domain=own, allow_subdomains=False)).ok
    abe = await org.add(role.name.lower(), role)
    for reply in (
        await abe.post("/realm/domains", domain="b.com", allow_subdomains=False),
        await abe.patch(f"/realm/domains/{own}", allow_subdomains=True),
        await abe.delete(f"/realm/domains/{own}"),
    ):
        reply.refused("UNAUTHORIZED_PRINCIPAL")


async def test_removing_the_last_domain_ends_the_restriction(org: Organization) -> None:
    ann = org["ann"]
    for domain in ("a.com", "b.com"):
        await ann.post("/realm/domains", domain=domain, allow_subdomains=False)
    await ann.patch("/realm", emails_restricted_to_domains=True)
    ben = await org["ben"].register()
    assert (await ann.delete("/realm/domains/a.com")).ok
    assert (await ann.delete("/realm/domains/b.com")).ok
    _, _, restriction = await ben.events()
    assert (restriction["property"], restriction["value"]) == (
        "emails_restricted_to_domains",
        False,
    )


@rows(
    ("restricted", "address", "taken"),
    [
        (False, "new@anywhere.org", True),
        (False, "new@mailinator.com", False),
        (False, "new@sub.mailinator.com", False),
        (False, "new+tag@anywhere.org", True),
        (True, "new@a.com", True),
        (True, "new@A.COM", True),
        (True, "new@sub.a.com", False),
        (True, "new@b.com", True),
        (True, "new@sub.b.com", True),
        (True, "new@notb.com", False),
        (True, "new+tag@a.com", False),
        (True, "new@anywhere.org", False),
    ],
)
async def test_new_addresses_are_in_the_organization_s_domains(
    org: Organization, restricted: bool, address: str, taken: bool
) -> None:
    ann = org["ann"]
    # An unused address.
    address = address.replace("new", f"new{org.node.state.users.next_id()}")
    await ann.post("/realm/domains", domain="a.com", allow_subdomains=False)
    await ann.post("/realm/domains", domain="b.com", allow_subdomains=True)
    await ann.patch("/realm", emails_restricted_to_domains=restricted)
    changed = await ann.patch(f"/users/{org['ben'].user_id}", new_email=address)
    assert (changed.status == 200) is taken
    if taken:
        await ann.patch(f"/users/{org['ben'].user_id}", new_email="ben@a.com")
    new = {"email": address, "password": "long enough", "full_name": "New"}
    assert ((await ann.post("/users", **new)).status == 200) is taken


async def test_disposable_addresses_can_be_allowed(org: Organization) -> None:
    await org["ann"].patch("/realm", disallow_disposable_email_addresses=False)
    new = {"email": "new@mailinator.com", "password": "long enough", "full_name": "New"}
    assert (await org["ann"].post("/users", **new)).ok


# Linkifiers

ISSUE = {"pattern": "#(?P<id>[0-9]+)", "url_template": "https://example.com/{id}"}


def linkifier_json(linkifier_id: int, **given: Any) -> Data:
    return {
        "id": linkifier_id,
        "example_input": None,
        "reverse_template": None,
        "alternative_url_templates": [],
        **given,
    }


async def test_a_linkifier_is_added_changed_and_removed(org: Organization) -> None:
    ann = org["ann"]
    ben = await org["ben"].register(client_capabilities=KNOWS_LINKIFIERS)
    assert ben.data["realm_linkifiers"] == []
    linkifier_id = (await ann.post("/realm/filters", **ISSUE)).ok["id"]
    lists = [[linkifier_json(linkifier_id, **ISSUE)]]
    other = {"pattern": "!(?P<n>[0-9]+)", "url_template": "https://example.org/{n}"}
    assert (await ann.patch(f"/realm/filters/{linkifier_id}", **other)).ok
    lists.append([linkifier_json(linkifier_id, **other)])
    assert (await org["gus"].get("/realm/linkifiers")).ok["linkifiers"] == lists[-1]
    fresh = await org["ben"].register(client_capabilities=KNOWS_LINKIFIERS)
    assert fresh.data["realm_linkifiers"] == lists[-1]
    assert (await ann.delete(f"/realm/filters/{linkifier_id}")).ok
    lists.append([])
    events = await ben.events()
    assert [event["type"] for event in events] == ["realm_linkifiers"] * 3
    # An event has the current list.
    assert events[-1]["realm_linkifiers"] == []
    assert (await ann.post("/realm/filters", **ISSUE)).ok["id"] > linkifier_id


async def test_linkifiers_are_limited_in_number_and_size(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = org["ann"]
    monkeypatch.setattr(linkifiers, "MAX_LINKIFIERS", 2)
    monkeypatch.setattr(linkifiers, "MAX_CHARACTERS", 100)
    first = (await ann.post("/realm/filters", **ISSUE)).ok["id"]
    long = {"pattern": "!(?P<id>[0-9]+)", "url_template": "https://example.com/" + "x" * 50}
    long["url_template"] += "{id}"
    assert "100 characters" in (await ann.post("/realm/filters", **long)).refused()["msg"]
    second = {"pattern": "!(?P<id>[0-9]+)", "url_template": "https://example.com/{id}"}
    (await ann.post("/realm/filters", **second)).ok
    third = {**second, "pattern": "x(?P<id>[0-9]+)"}
    assert "2 linkifiers" in (await ann.post("/realm/filters", **third)).refused()["msg"]
    path = f"/realm/filters/{first}"
    (await ann.patch(path, url_template=long["url_template"])).refused()
    # One that exceeds the limit, from a time without it, can still be made smaller.
    monkeypatch.setattr(linkifiers, "MAX_CHARACTERS", 10)
    (await ann.patch(path, url_template="https://a.b/{id}")).ok


async def test_a_too_complex_pattern_is_refused(org: Organization) -> None:
    given = {"pattern": r"(?P<id>[a-z\pL]{1,900})", "url_template": "https://example.com/{id}"}
    refused = (await org["ann"].post("/realm/filters", **given)).refused()
    assert "too complex" in refused["msg"]


async def test_each_linkifier_event_has_the_whole_list(org: Organization) -> None:
    ben = await org["ben"].register(client_capabilities=KNOWS_LINKIFIERS)
    first = (await org["ann"].post("/realm/filters", **ISSUE)).ok["id"]
    (event,) = await ben.events()
    assert event["realm_linkifiers"] == [linkifier_json(first, **ISSUE)]
    assert (await org["ann"].patch(f"/realm/filters/{first}", **ISSUE)).ok
    assert await ben.events() == []


async def test_clients_without_templates_get_no_linkifiers(org: Organization) -> None:
    ben = await org["ben"].register()
    await org["ann"].post("/realm/filters", **ISSUE)
    assert await ben.events() == []
    assert (await org["ben"].register()).data["realm_linkifiers"] == []
    assert (await org["ben"].register()).data["realm_filters"] == []


@rows(
    "given",
    [
        {"pattern": ""},
        {"pattern": "  "},
        {"pattern": "("},
        {"pattern": "(?P<id>[0-9]+)(?=x)"},
        {"pattern": r"(?P<id>a)\1"},
        {"pattern": "x" * 1001},
        {"pattern": "((?P<id>a{1000}){1000}){1000}"},
        {"pattern": "#[0-9]+"},
        {"pattern": "#(?P<number>[0-9]+)"},
        {"pattern": "#(?P<id>[0-9]+)(?P<more>x)"},
        {"url_template": ""},
        {"url_template": "https://example.com/"},
        {"url_template": "https://example.com/{id"},
        {"url_template": "https://example.com/id}"},
        {"url_template": "https://example.com/{}/{id}"},
        {"url_template": "https://example.com/{id}/{id other}"},
        {"url_template": "https://example.com/{id}/{other}"},
        {"url_template": "https://example.com/{!id}"},
        {"url_template": "https://example.com/%(id)s/{id}"},
        {"url_template": "https://example.com/ {id}"},
        {"url_template": 'https://example.com/"{id}'},
        {"url_template": "javascript:alert({id})"},
        {"url_template": " JavaScript:alert({id})"},
        {"url_template": "https://example.com/{id}" + "x" * 2000},
        {"reverse_template": "#{id}"},
        {"example_input": "nothing of the kind"},
        {"example_input": "#123 "},
        {"example_input": "#123", "reverse_template": "{id}"},
        {"example_input": "#123", "reverse_template": "#{id"},
        {"example_input": "#123", "reverse_template": "#id}"},
        {"example_input": "#123", "reverse_template": "#{other}"},
        {"example_input": "#123", "reverse_template": "#{{id}}"},
        {"example_input": "#" + "1" * 1001},
        {"alternative_url_templates": ["https://example.org/{"]},
        {"alternative_url_templates": ["https://example.org/"]},
        {"alternative_url_templates": ["https://example.org/{id}/{other}"]},
        {"alternative_url_templates": [""]},
        {"alternative_url_templates": ["https://example.org/{id}"] * 51},
    ],
)
async def test_an_invalid_linkifier_is_refused(shared_org: Organization, given: Data) -> None:
    ann = shared_org["ann"]
    (await ann.post("/realm/filters", **{**ISSUE, **given})).refused()
    present = (await ann.post("/realm/filters", **ISSUE)).ok["id"]
    (await ann.patch(f"/realm/filters/{present}", **given)).refused()
    assert (await ann.get("/realm/linkifiers")).ok["linkifiers"] == [
        linkifier_json(present, **ISSUE)
    ]
    assert (await ann.delete(f"/realm/filters/{present}")).ok


@rows(
    ("name", "value"),
    [
        ("alternative_url_templates", "https://example.org/{id}"),
        ("alternative_url_templates", [1]),
        ("pattern", "a\0b"),
        ("url_template", "a\0b"),
    ],
)
async def test_a_linkifier_with_wrong_types_is_refused(
    readonly_org: Organization, name: str, value: Any
) -> None:
    reply = await readonly_org["ann"].post("/realm/filters", **{**ISSUE, name: value})
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == name


@rows("name", ["pattern", "url_template"])
async def test_pattern_and_template_are_required(readonly_org: Organization, name: str) -> None:
    given = {key: value for key, value in ISSUE.items() if key != name}
    reply = await readonly_org["ann"].post("/realm/filters", **given)
    assert reply.refused("REQUEST_VARIABLE_MISSING")["var_name"] == name


@rows(
    "given",
    [
        {},
        {"example_input": "#123"},
        {"example_input": "#123", "reverse_template": "#{id}"},
        {"alternative_url_templates": ["https://example.org/{id}", "https://x.org/{?id}"]},
        {"url_template": "https://example.com/{id:3}"},
        {"url_template": "https://example.com{/id*}"},
        {"url_template": "https://example.com/{+id}{#id}"},
        {"pattern": "(?P<id>x)", "url_template": "/relative/{id}"},
        {
            "pattern": "{(?P<id>[0-9]+)}",
            "example_input": "{7}",
            "reverse_template": "{{{id}}}",
        },
        {
            "pattern": "(?P<a>[a-z]+)-(?P<b>[0-9]+)",
            "url_template": "https://example.com/{a,b}",
            "example_input": "x-1",
            "reverse_template": "{a}-{b}",
        },
    ],
)
async def test_a_linkifier_is_stored_unchanged(shared_org: Organization, given: Data) -> None:
    whole = {**ISSUE, **given}
    linkifier_id = (await shared_org["ann"].post("/realm/filters", **whole)).ok["id"]
    listed = (await shared_org["ben"].get("/realm/linkifiers")).ok["linkifiers"]
    assert listed == [linkifier_json(linkifier_id, **whole)]
    # (The next one may have the same pattern.)
    assert (await shared_org["ann"].delete(f"/realm/filters/{linkifier_id}")).ok


async def test_empty_text_removes_example_and_reverse_template(org: Organization) -> None:
    whole = {**ISSUE, "example_input": "#123", "reverse_template": "#{id}"}
    linkifier_id = (await org["ann"].post("/realm/filters", **whole)).ok["id"]
    place = f"/realm/filters/{linkifier_id}"
    (await org["ann"].patch(place, example_input="")).refused()
    assert (await org["ann"].patch(place, example_input="", reverse_template="")).ok
    assert (await org["ann"].get("/realm/linkifiers")).ok["linkifiers"] == [
        linkifier_json(linkifier_id, **ISSUE)
    ]
    assert (await org["ann"].patch(place, example_input="#1", reverse_template="#{id}")).ok
    assert (await org["ann"].patch(place, example_input="null", reverse_template="null")).ok
    assert (await org["ann"].get("/realm/linkifiers")).ok["linkifiers"] == [
        linkifier_json(linkifier_id, **ISSUE)
    ]


async def test_a_pattern_is_used_once(org: Organization) -> None:
    other = {"pattern": "!(?P<id>[0-9]+)", "url_template": "https://example.org/{id}"}
    await org["ann"].post("/realm/filters", **ISSUE)
    second = (await org["ann"].post("/realm/filters", **other)).ok["id"]
    (await org["ann"].post("/realm/filters", **ISSUE)).refused()
    (await org["ann"].patch(f"/realm/filters/{second}", pattern=ISSUE["pattern"])).refused()


async def test_linkifiers_can_be_reordered(org: Organization) -> None:
    ann = org["ann"]
    ids = []
    for mark in "#!?":
        given = {"pattern": rf"\{mark}(?P<id>[0-9]+)", "url_template": "https://example.org/{id}"}
        ids.append((await ann.post("/realm/filters", **given)).ok["id"])
    assert await order_of(org) == ids
    ben = await org["ben"].register(client_capabilities=KNOWS_LINKIFIERS)
    turned = [ids[2], ids[0], ids[1]]
    for wrong in ([], ids[:2], [*ids, 99], [ids[0], ids[0], ids[1]], [*ids, ids[0]]):
        (await ann.patch("/realm/linkifiers", ordered_linkifier_ids=wrong)).refused()
    assert (await ann.patch("/realm/linkifiers", ordered_linkifier_ids=ids)).ok
    assert await ben.events() == []
    assert (await ann.patch("/realm/linkifiers", ordered_linkifier_ids=turned)).ok
    (event,) = await ben.events()
    assert [one["id"] for one in event["realm_linkifiers"]] == turned
    assert await order_of(org) == turned
    given = {"pattern": "new(?P<id>[0-9]+)", "url_template": "https://example.org/{id}"}
    last = (await ann.post("/realm/filters", **given)).ok["id"]
    assert await order_of(org) == [*turned, last]


async def order_of(org: Organization) -> list[int]:
    listed = (await org["ben"].get("/realm/linkifiers")).ok["linkifiers"]
    return [one["id"] for one in listed]


async def test_an_unknown_linkifier_is_refused(readonly_org: Organization) -> None:
    (await readonly_org["ann"].patch("/realm/filters/7", **ISSUE)).refused()
    (await readonly_org["ann"].delete("/realm/filters/7")).refused()


async def test_the_obsolete_list_of_filters_is_gone(readonly_org: Organization) -> None:
    (await readonly_org["ann"].get("/realm/filters")).refused("BAD_REQUEST", 405)


@rows("role", [Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_administrators_manage_linkifiers(org: Organization, role: Role) -> None:
    own = {**ISSUE, "pattern": f"{role.name}{ISSUE['pattern']}"}
    present = (await org["ann"].post("/realm/filters", **own)).ok["id"]
    abe = await org.add(role.name.lower(), role)
    for reply in (
        await abe.post("/realm/filters", **ISSUE),
        await abe.patch(f"/realm/filters/{present}", **ISSUE),
        await abe.delete(f"/realm/filters/{present}"),
        await abe.patch("/realm/linkifiers", ordered_linkifier_ids=[present]),
    ):
        reply.refused("UNAUTHORIZED_PRINCIPAL")


# Playgrounds

RUST = {
    "name": "Rust playground",
    "pygments_language": "Rust",
    "url_template": "https://play.example/?code={code}",
}


async def test_a_playground_is_added_and_removed(org: Organization) -> None:
    gus = await org["gus"].register()
    assert gus.data["realm_playgrounds"] == []
    playground_id = (await org["ann"].post("/realm/playgrounds", **RUST)).ok["id"]
    (event,) = await gus.events()
    listed = [{"id": playground_id, **RUST}]
    assert without_id(event) == {"type": "realm_playgrounds", "realm_playgrounds": listed}
    assert (await org["gus"].register()).data["realm_playgrounds"] == listed
    assert (await org["ann"].delete(f"/realm/playgrounds/{playground_id}")).ok
    (event,) = await gus.events()
    assert event["realm_playgrounds"] == []
    (await org["ann"].delete(f"/realm/playgrounds/{playground_id}")).refused()
    assert (await org["ann"].post("/realm/playgrounds", **RUST)).ok["id"] > playground_id


@rows("language", ["Common Lisp", "C++", "F#", "Objective-C++", "Cap'n Proto"])
async def test_a_language_is_stored_by_its_lexer_s_name(org: Organization, language: str) -> None:
    given = {**RUST, "pygments_language": f" {language} "}
    assert (await org["ann"].post("/realm/playgrounds", **given)).ok
    *_, shown = (await org["ann"].register()).data["realm_playgrounds"]
    assert shown["pygments_language"] == language


def test_every_lexer_can_have_a_playground() -> None:
    for name, *_ in get_all_lexers():
        assert names.lexer_name(name) == name


@rows(
    "given",
    [
        {"name": ""},
        {"name": " "},
        {"name": "n" * 101},
        {"name": "a\nb"},
        {"pygments_language": ""},
        {"pygments_language": " "},
        {"pygments_language": "a`b"},
        {"pygments_language": "l" * 41},
        {"url_template": ""},
        {"url_template": "https://play.example/"},
        {"url_template": "https://play.example/{other}"},
        {"url_template": "https://play.example/{code}/{other}"},
        {"url_template": "https://play.example/{code"},
        {"url_template": "https://play.example/{{code}}"},
        {"url_template": "javascript:{code}"},
    ],
)
async def test_an_invalid_playground_is_refused(readonly_org: Organization, given: Data) -> None:
    (await readonly_org["ann"].post("/realm/playgrounds", **{**RUST, **given})).refused()


@rows("name", list(RUST))
async def test_all_three_parameters_are_required(readonly_org: Organization, name: str) -> None:
    given = {key: value for key, value in RUST.items() if key != name}
    reply = await readonly_org["ann"].post("/realm/playgrounds", **given)
    assert reply.refused("REQUEST_VARIABLE_MISSING")["var_name"] == name


async def test_a_language_has_one_playground_of_a_name(org: Organization) -> None:
    assert (await org["ann"].post("/realm/playgrounds", **RUST)).ok
    (await org["ann"].post("/realm/playgrounds", **RUST)).refused()
    assert (await org["ann"].post("/realm/playgrounds", **{**RUST, "name": "Other"})).ok
    other = {**RUST, "pygments_language": "C++"}
    assert (await org["ann"].post("/realm/playgrounds", **other)).ok


@rows("role", [Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_playgrounds_are_for_administrators(org: Organization, role: Role) -> None:
    own = {**RUST, "name": role.name}
    present = (await org["ann"].post("/realm/playgrounds", **own)).ok["id"]
    abe = await org.add(role.name.lower(), role)
    (await abe.post("/realm/playgrounds", **RUST)).refused("UNAUTHORIZED_PRINCIPAL")
    (await abe.delete(f"/realm/playgrounds/{present}")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_everything_survives_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        ann = org["ann"]
        await ann.post("/realm/domains", domain="a.com", allow_subdomains=True)
        await ann.post("/realm/filters", **ISSUE)
        gone = (await ann.post("/realm/playgrounds", **RUST)).ok["id"]
        await ann.delete(f"/realm/playgrounds/{gone}")
        before = await everything(org)
    async with open_organization(config) as org:
        assert await everything(org) == before
        assert (await org["ann"].post("/realm/playgrounds", **RUST)).ok["id"] == gone + 1


async def everything(org: Organization) -> Data:
    names = ("realm_domains", "realm_linkifiers", "realm_playgrounds")
    data = (
        await org["ann"].register(
            fetch_event_types=list(names), client_capabilities=KNOWS_LINKIFIERS
        )
    ).data
    return {name: data[name] for name in names}
