"""Random steps about settings, statuses, and profiles."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from PIL import Image

if TYPE_CHECKING:
    from tests.property.histories import History, Step

FIELDS: list[dict[str, Any]] = [
    {"name": "Biography", "field_type": 2},
    {"name": "Desk", "field_type": 1, "display_in_profile_summary": True},
    {"name": "Birthday", "field_type": 4, "editable_by_user": False},
    {
        "name": "Floor",
        "field_type": 3,
        "field_data": {"1": {"text": "one", "order": "1"}, "2": {"text": "two", "order": "2"}},
    },
    {"name": "Manager", "field_type": 6},
    {"field_type": 7, "field_data": {"subtype": "github"}},
]


async def change_settings(history: History) -> None:
    rng = history.rng
    values: dict[str, Any] = rng.choice(
        [
            {"email_address_visibility": rng.randint(1, 5)},
            {"email_address_visibility": rng.randint(1, 5)},
            {"presence_enabled": rng.random() < 0.5},
            {"timezone": rng.choice(["", "Europe/Madrid", "Asia/Kolkata"])},
            {"color_scheme": rng.randint(1, 3), "default_language": rng.choice(["en", "de"])},
            {"full_name": f"Self {rng.randint(1, 99)}"},
            {"twenty_four_hour_time": rng.choice([True, False, None])},
        ]
    )
    if "twenty_four_hour_time" in values and values["twenty_four_hour_time"] is None:
        values["twenty_four_hour_time"] = "null"
    if rng.random() < 0.2 and "full_name" not in values:
        values["target_users"] = {"group_ids": [rng.choice([1, 3])]}
    history.done[-1] += f" {values}"
    history.accepted(await history.org[history.who()].patch("/settings", **values))


async def say_what_one_does(history: History) -> None:
    rng = history.rng
    values: dict[str, Any] = rng.choice(
        [
            {"status_text": rng.choice(["", "lunch", "in a meeting"])},
            {"emoji_name": rng.choice(["", "pizza", "car"])},
            {"away": rng.random() < 0.5},
            {"status_text": "", "emoji_name": ""},
        ]
    )
    if rng.random() < 0.3:
        values.pop("away", None)
        user_id = history.org[rng.choice(["cleo", "gus"])].user_id
        history.accepted(await history.org["ann"].post(f"/users/{user_id}/status", **values))
        return
    if history.rng.random() < 0.3:
        values["scheduled_end_time"] = int(history.clock()) + history.rng.randint(60, 120)
    history.accepted(await history.org[history.who()].post("/users/me/status", **values))


async def change_fields(history: History) -> None:
    rng, ann = history.rng, history.org["ann"]
    ids = [field.id for field in history.state.profile_fields]
    if len(ids) < 3 or rng.random() < 0.3:
        history.accepted(await ann.post("/realm/profile_fields", **rng.choice(FIELDS)))
        return
    chosen = rng.choice(ids)
    if rng.random() < 0.3:
        history.accepted(await ann.delete(f"/realm/profile_fields/{chosen}"))
    elif rng.random() < 0.4:
        rng.shuffle(ids)
        history.accepted(await ann.patch("/realm/profile_fields", order=ids))
    else:
        values: dict[str, Any] = rng.choice(
            [
                {"hint": rng.choice(["", "where you sit"])},
                {"required": rng.random() < 0.5},
                {"field_data": {"2": {"text": "two", "order": "1"}}},
            ]
        )
        history.accepted(await ann.patch(f"/realm/profile_fields/{chosen}", **values))


async def fill_in(history: History) -> None:
    rng = history.rng
    fields = list(history.state.profile_fields)
    if not fields:
        return
    field = rng.choice(fields)
    values: dict[int, list[Any]] = {
        3: ["1", "2"],
        4: ["2001-02-03"],
        6: [[history.org["ann"].user_id], [history.org["cleo"].user_id]],
    }
    value = rng.choice([*values.get(field.kind, ["*some* text", "@**Ben**"]), ""])
    data = [{"id": field.id, "value": value}]
    if rng.random() < 0.3:
        user_id = history.org[rng.choice(["cleo", "gus"])].user_id
        history.accepted(await history.org["ann"].patch(f"/users/{user_id}", profile_data=data))
    elif rng.random() < 0.2:
        who = history.org[history.who()]
        history.accepted(await who.delete("/users/me/profile_data", data=[field.id]))
    else:
        who = history.org[history.who()]
        history.accepted(await who.patch("/users/me/profile_data", data=data))


async def change_picture(history: History) -> None:
    who = history.org[history.who()]
    if history.rng.random() < 0.5:
        history.accepted(await who.delete("/users/me/avatar"))
        return
    out = io.BytesIO()
    Image.new("RGB", (3, 3), "teal").save(out, "PNG")
    picture = {"file": ("me.png", out.getvalue(), "image/png")}
    history.accepted(await who.raw("POST", "/users/me/avatar", files=picture))


PEOPLE_STEPS: dict[Step, int] = {
    change_settings: 3,
    say_what_one_does: 2,
    change_fields: 2,
    fill_in: 3,
    change_picture: 1,
}
