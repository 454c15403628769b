"""Default settings of new accounts, slash commands, and onboarding steps."""

from typing import Any

from tertulia.domain.accounts.personal_settings import RULES
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.wire.api.settings import FIXED, wire_name
from tests.support import Organization, new_organization, open_organization, row, rows
from tests.wire.register_fields import SETTINGS

CHOICES = {
    "emojiset": "twitter",
    "notification_sound": "ding",
    "web_animate_image_previews": "never",
    "web_home_view": "recent",
    "email_notifications_batching_period_seconds": 300,
    "web_font_size_px": 18,
    "web_line_height_percent": 150,
}
NAMES = sorted(wire_name(field) for field in RULES if field != "default_language")


def another(name: str, present: Any) -> Any:
    """Another valid value of the setting."""
    if name in CHOICES:
        return CHOICES[name]
    return (not present) if isinstance(present, bool) else present % 3 + 1


def test_every_setting_has_a_default() -> None:
    more = {"default_language", "emojiset_choices", "available_notification_sounds", *FIXED}
    assert {*NAMES, *more} == set(SETTINGS.split())


async def test_a_changed_default_is_announced_shown_and_applied_to_new_accounts(
    org: Organization,
) -> None:
    ben = await org["ben"].register()
    before, defaults = (ben.data[key] for key in ("user_settings", "realm_user_settings_defaults"))
    values = {name: another(name, defaults[name]) for name in NAMES}
    for name, value in values.items():
        with row(name):
            assert (await org["ann"].patch("/realm/user_settings_defaults", **{name: value})).ok
            (event,) = await ben.events()
            assert (event["type"], event["op"]) == ("realm_user_settings_defaults", "update")
            assert (event["property"], event["value"]) == (name, value)
    new = {"email": "eve@example.com", "full_name": "Eve", "password": "long enough"}
    eve_id = (await org["ann"].post("/users", **new)).ok["user_id"]
    org.person_of("eve", org.node.state.users[eve_id])
    after = (await org["ben"].register()).data
    assert after["user_settings"] == before
    assert after["realm_user_settings_defaults"] == defaults | values
    eves = (await org["eve"].register()).data["user_settings"]
    assert {name: eves[name] for name in NAMES} == values


async def test_an_equal_value_sends_no_event(readonly_org: Organization) -> None:
    ben = await readonly_org["ben"].register()
    same = ben.data["realm_user_settings_defaults"]["web_font_size_px"]
    reply = await readonly_org["ann"].patch("/realm/user_settings_defaults", web_font_size_px=same)
    assert reply.ok
    assert await ben.events() == []


@rows(
    ("name", "value"),
    [
        ("color_scheme", 4),
        ("color_scheme", "dark"),
        ("emojiset", "none"),
        ("enter_sends", "yes"),
        ("email_address_visibility", 6),
        ("web_home_view", "recent_topics"),
        ("desktop_icon_count_display", 5),
    ],
)
async def test_an_invalid_default_is_refused(
    readonly_org: Organization, name: str, value: Any
) -> None:
    reply = await readonly_org["ann"].patch("/realm/user_settings_defaults", **{name: value})
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == name


async def test_an_unknown_sound_is_refused(readonly_org: Organization) -> None:
    place = "/realm/user_settings_defaults"
    (
        await readonly_org["ann"].patch(place, notification_sound="thunder", enter_sends=True)
    ).refused()
    data = (await readonly_org["ann"].register()).data
    assert data["realm_user_settings_defaults"]["enter_sends"] is False


async def test_new_accounts_have_the_organization_s_language(org: Organization) -> None:
    ben = await org["ben"].register()
    reply = await org["ann"].patch("/realm/user_settings_defaults", default_language="fr")
    assert reply.ok["ignored_parameters_unsupported"] == ["default_language"]
    assert (await org["ann"].patch("/realm", default_language="de")).ok
    told = {(e["type"], e["property"], e["value"]) for e in await ben.events()}
    assert told == {
        ("realm", "default_language", "de"),
        ("realm_user_settings_defaults", "default_language", "de"),
    }
    await org.add("eve")
    data = (await org["eve"].register()).data
    assert data["user_settings"]["default_language"] == "de"
    assert data["realm_user_settings_defaults"]["default_language"] == "de"


async def test_an_unknown_setting_is_reported_as_ignored(readonly_org: Organization) -> None:
    reply = await readonly_org["ann"].patch("/realm/user_settings_defaults", dense_mode=True)
    assert reply.ok["ignored_parameters_unsupported"] == ["dense_mode"]


@rows("role", [Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_defaults_are_for_administrators(org: Organization, role: Role) -> None:
    abe = await org.add(role.name.lower(), role)
    reply = await abe.patch("/realm/user_settings_defaults", enter_sends=True)
    reply.refused("UNAUTHORIZED_PRINCIPAL")


async def test_defaults_survive_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        await org["ann"].patch("/realm/user_settings_defaults", enter_sends=True)
    async with open_organization(config) as org:
        data = (await org["ann"].register()).data
        assert data["realm_user_settings_defaults"]["enter_sends"] is True


# Slash commands


async def test_a_ping_is_answered(readonly_org: Organization) -> None:
    assert (await readonly_org["ben"].post("/zcommand", command="/ping")).ok


@rows(
    ("command", "name", "value"),
    [
        ("/dark", "color_scheme", 2),
        ("/light", "color_scheme", 3),
        ("/fluid-width", "fluid_layout_width", True),
        ("/fixed-width", "fluid_layout_width", False),
    ],
)
async def test_a_command_changes_a_setting_and_confirms_it(
    org: Organization, command: str, name: str, value: Any
) -> None:
    await org["ben"].patch("/settings", fluid_layout_width=not value)
    ben = await org["ben"].register()
    reply = await org["ben"].post("/zcommand", command=command)
    assert (reply.status, reply.body["result"], bool(reply.body["msg"])) == (200, "success", True)
    (event,) = await ben.events()
    assert (event["type"], event["property"], event["value"]) == ("user_settings", name, value)


@rows("command", ["", "ping", "/", "/dance", "dark", "//dark"])
async def test_an_unknown_command_is_refused(readonly_org: Organization, command: str) -> None:
    (await readonly_org["ben"].post("/zcommand", command=command)).refused()


# Onboarding steps


async def test_a_step_is_shown_until_it_was_seen(org: Organization) -> None:
    ben, other = await org["ben"].register(), await org["ben"].register()
    steps = ben.data["onboarding_steps"]
    assert {step["type"] for step in steps} == {"one_time_notice"}
    names = [step["name"] for step in steps]
    assert (await org["ben"].post("/users/me/onboarding_steps", onboarding_step=names[0])).ok
    for listener in (ben, other):
        (event,) = await listener.events()
        assert event["type"] == "onboarding_steps"
        assert event["onboarding_steps"] == steps[1:]
    assert (await org["ben"].register()).data["onboarding_steps"] == steps[1:]
    assert (await org["cleo"].register()).data["onboarding_steps"] == steps
    assert (await org["ben"].post("/users/me/onboarding_steps", onboarding_step=names[0])).ok
    assert await ben.events() == []


@rows("name", ["", "no such hint", "n" * 10_000])
async def test_an_unknown_step_is_refused(readonly_org: Organization, name: str) -> None:
    (await readonly_org["ben"].post("/users/me/onboarding_steps", onboarding_step=name)).refused()


async def test_seen_steps_are_not_shown_after_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        steps = (await org["ann"].register()).data["onboarding_steps"]
        for step in steps[1:]:
            await org["ann"].post("/users/me/onboarding_steps", onboarding_step=step["name"])
    async with open_organization(config) as org:
        assert (await org["ann"].register()).data["onboarding_steps"] == steps[:1]
