"""The accounts of people that an identity provider identifies."""

from typing import Any

import pytest

from tertulia.domain.accounts import identities, signup
from tertulia.domain.accounts.identities import NotRecognized
from tertulia.domain.accounts.signup import NewMember
from tertulia.model.errors import AccountDeactivated, Refused
from tertulia.model.identities import ProvenIdentity, RecognitionRules
from tertulia.model.users import Role, User
from tests.browsers import set_password
from tests.emails import no_email_job
from tests.support import Organization, row

pytestmark = pytest.mark.usefixtures(no_email_job.__name__, "no_logged_errors")

RULES = RecognitionRules(title="Company account")


async def recognized(
    org: Organization, subject: str = "s1", rules: RecognitionRules = RULES, **facts: Any
) -> User:
    """Return the account of a person at the provider, by default Ben's."""
    known = {
        "address": "ben@example.com",
        "is_address_verified": True,
        "full_name": "Ben at Work",
    }
    proven = ProvenIdentity(method="company", subject=subject, **{**known, **facts})
    node = org.node
    user: User = await node.log.submit(
        None,
        identities.recognize,
        proven,
        rules,
        await node.vault.credential(0, None),
        "https://chat.example.com",
        node.renderer.render,
    )
    return node.state.users[user.id]


async def test_the_providers_own_id_wins_over_the_address(org: Organization) -> None:
    ben = await recognized(org)
    assert (ben.id, ben.full_name) == (org["ben"].user_id, "Ben")
    # The person was renamed at the provider, or now has the address of another account here.
    for address in ("new@example.com", "ann@example.com", ""):
        with row(address):
            again = await recognized(org, address=address, is_address_verified=False)
            assert again.id == ben.id
    assert len(org.node.state.identities) == 1


async def test_an_unverified_address_opens_and_creates_nothing(org: Organization) -> None:
    for address in ("ben@example.com", "eve@example.com", ""):
        with row(address), pytest.raises(NotRecognized):
            await recognized(org, address=address, is_address_verified=False)
    assert not len(org.node.state.identities)


async def test_an_address_that_was_given_to_someone_else_does_not_open_the_account(
    org: Organization,
) -> None:
    await recognized(org)
    with pytest.raises(NotRecognized, match="linked to another person"):
        await recognized(org, "s2")
    ben = org["ben"].user_id
    assert await org.node.log.submit(None, identities.unlink, ben, "company") == 1
    assert (await recognized(org, "s2")).id == ben


async def test_people_without_an_account_get_one(org: Organization) -> None:
    eve = await recognized(org, address="eve@example.com", full_name="Eve *Adams*")
    assert (eve.full_name, eve.role, eve.address) == ("Eve Adams", Role.MEMBER, "eve@example.com")
    assert org.node.state.credentials[eve.id].password_hash is None
    assert (await recognized(org, address="eve@example.com")).id == eve.id
    # An invalid name doesn't prevent signing in.
    other = await recognized(org, "s2", address="zoe@example.com", full_name="\u202e")
    assert other.full_name == "zoe"


async def test_only_accounts_that_exist_are_matched_if_wanted(org: Organization) -> None:
    match = RecognitionRules(title="Company account", creates=False)
    assert (await recognized(org, rules=match)).id == org["ben"].user_id
    with pytest.raises(NotRecognized, match="No account here"):
        await recognized(org, "s2", match, address="eve@example.com")
    await _invite(org, "eve@example.com", Role.MODERATOR)
    assert (await recognized(org, "s2", match, address="Eve@example.com")).role is Role.MODERATOR


async def test_a_provider_for_everyone_does_not_replace_invitations(org: Organization) -> None:
    public = RecognitionRules(title="GitHub", is_public=True)
    await org.change_realm(invite_required=True)
    with pytest.raises(NotRecognized, match="need an invitation"):
        await recognized(org, "s2", public, address="eve@example.com")
    await _invite(org, "eve@example.com", Role.GUEST)
    assert (await recognized(org, "s2", public, address="eve@example.com")).role is Role.GUEST
    await org.change_realm(invite_required=False, emails_restricted_to_domains=True)
    with pytest.raises(Refused, match="this domain"):
        await recognized(org, "s3", public, address="zoe@example.net")


async def _invite(org: Organization, address: str, role: Role) -> None:
    assert (
        await org["ann"].post(
            "/invites", invitee_emails=address, invite_as=int(role), stream_ids=[]
        )
    ).ok
    assert any(one.address == address for one in org.node.state.invitations)


async def test_an_invited_person_keeps_the_role_until_the_provider_gives_another(
    org: Organization,
) -> None:
    roles = {Role.ADMINISTRATOR: "admins", Role.GUEST: "contractors"}
    rules = RecognitionRules(title="Company account", roles=roles)

    async def role_with(*values: str, subject: str = "s2", address: str = "eve") -> Role:
        facts = {"address": f"{address}@example.com", "groups": frozenset(values)}
        return (await recognized(org, subject, rules, **facts)).role

    await _invite(org, "eve@example.com", Role.GUEST)
    assert [await role_with() for _ in range(3)] == [Role.GUEST] * 3
    assert await role_with("admins") is Role.ADMINISTRATOR
    assert await role_with() is Role.MEMBER, "the provider takes away what it gave"
    # A person who already joined with an invitation and a password.
    await _invite(org, "kai@example.com", Role.GUEST)
    (invitation,) = org.node.state.invitations.of_address["kai@example.com"]
    joining = NewMember(
        address="kai@example.com",
        full_name="Kai",
        credential=await org.node.vault.credential(0, None),
        site="https://chat.example.com",
    )
    render = org.node.renderer.render
    await org.node.log.submit(None, signup.join_invited, invitation.id, joining, render)
    for _ in range(2):
        assert await role_with(subject="s4", address="kai") is Role.GUEST
    # The provider's role counts from the beginning, if there is one.
    await _invite(org, "zoe@example.com", Role.MEMBER)
    assert await role_with("contractors", subject="s3", address="zoe") is Role.GUEST
    assert await role_with(subject="s3", address="zoe") is Role.MEMBER


async def test_a_reusable_invitation_is_remembered_until_an_account_is_linked(
    org: Organization,
) -> None:
    ann = org["ann"]
    group_id = (
        await ann.post("/user_groups/create", name="baristas", description="", members=[])
    ).ok["group_id"]
    channel_id = await org.channel("bar", "ann")
    terms = {"stream_ids": [channel_id], "group_ids": [group_id]}
    assert (await ann.post("/invites/multiuse", invite_as=int(Role.GUEST), **terms)).ok
    (invitation,) = org.node.state.invitations
    joining = NewMember(
        address="kai@example.com",
        full_name="Kai",
        credential=await org.node.vault.credential(0, "correct horse"),
        site="https://chat.example.com",
    )
    render = org.node.renderer.render
    kai = await org.node.log.submit(None, signup.join_invited, invitation.id, joining, render)
    # The later fate of the link doesn't matter.
    (await ann.delete(f"/invites/multiuse/{invitation.id}")).ok
    rules = RecognitionRules(
        title="Company account",
        roles={Role.ADMINISTRATOR: "admins", Role.GUEST: "contractors"},
        groups={"baristas": "bar"},
    )

    async def role_with(*values: str) -> Role:
        facts = {"address": "kai@example.com", "groups": frozenset(values)}
        user = await recognized(org, "s4", rules, **facts)
        assert user.id == kai.id
        assert user.id in org.node.state.groups.named_members[group_id]
        assert channel_id in org.node.state.channel_ids_of(user.id)
        return user.role

    assert [await role_with() for _ in range(2)] == [Role.GUEST] * 2
    assert await role_with("bar", "admins") is Role.ADMINISTRATOR
    assert await role_with() is Role.MEMBER, "the provider takes away what it gave"


async def test_deactivated_accounts_and_bots_stay_out(org: Organization) -> None:
    await recognized(org)
    await org.add("helper", owner="ann")
    with pytest.raises(NotRecognized, match="bot"):
        await recognized(org, "s2", address="helper-bot@example.com")
    assert (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
    for subject in ("s1", "s2"):
        with pytest.raises(AccountDeactivated):
            await recognized(org, subject)


async def test_roles_and_groups_follow_the_provider(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    for name in ("baristas", "cooks"):
        assert (
            await ann.post("/user_groups/create", name=name, description="", members=[ann.user_id])
        ).ok
    rules = RecognitionRules(
        title="Company account",
        roles={Role.ADMINISTRATOR: "admins", Role.MODERATOR: "leads", Role.OWNER: "bosses"},
        groups={"Baristas": "bar", "nobody knows": "bar"},
    )

    def members(name: str) -> set[int]:
        state = org.node.state
        return set(state.groups.named_members[state.groups.by_name[name]])

    async def role_with(*values: str, **facts: Any) -> Role:
        return (await recognized(org, rules=rules, groups=frozenset(values), **facts)).role

    assert await role_with("bar", "leads", "admins") is Role.ADMINISTRATOR
    assert ben.user_id in members("baristas")
    assert ben.user_id not in members("cooks")
    assert await role_with("leads") is Role.MODERATOR
    assert ben.user_id not in members("baristas")
    assert await role_with() is Role.MEMBER
    assert (await recognized(org, rules=rules, groups=None)).role is Role.MEMBER
    new = await recognized(
        org, "s9", rules, address="eve@example.com", groups=frozenset({"bar", "admins"})
    )
    assert new.role is Role.ADMINISTRATOR
    assert new.id in members("baristas")
    # The last owner stays an owner, and roles without a rule stay unchanged.
    facts: dict[str, Any] = {"address": "ann@example.com"}
    ann_now = await recognized(org, "s3", rules, groups=frozenset({"leads"}), **facts)
    assert ann_now.role is Role.OWNER
    assert await role_with("bosses") is Role.OWNER
    ann_now = await recognized(org, "s3", rules, groups=frozenset({"leads"}), **facts)
    assert ann_now.role is Role.MODERATOR


async def test_people_unlink_their_own_account_if_they_get_in_otherwise(org: Organization) -> None:
    ben, ann = org["ben"], org["ann"]
    await recognized(org)
    (link,) = (await ben.get("/users/me/identities")).ok["identities"]
    assert (link["method"], link["title"]) == ("company", "company")
    path = f"/users/me/identities/{link['id']}"
    (await ann.delete(path)).refused(status=404)
    (await ben.delete(path)).refused()
    await set_password(org, "ben")
    ben = org["ben"]
    await org.change_realm(password_sign_in=False)
    (await ben.delete(path)).refused()
    await org.change_realm(password_sign_in=True)
    (await ben.delete(path)).ok
    assert (await ben.get("/users/me/identities")).ok["identities"] == []
    (await ben.delete(path)).refused(status=404)
    # Their address finds the account again.
    assert (await recognized(org, "s2")).id == ben.user_id


async def test_owners_unlink_accounts(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    await recognized(org)
    path = f"/users/{ben.user_id}/identities"
    for method in (ben.get, ben.delete):
        (await method(path)).refused("UNAUTHORIZED_PRINCIPAL")
    assert len((await ann.get(path)).ok["identities"]) == 1
    (await ann.delete(path)).ok
    assert (await ann.get(path)).ok["identities"] == []
    assert (await recognized(org, "s2")).id == ben.user_id
