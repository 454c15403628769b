"""Invitations: making, listing, sending again, revoking."""

from typing import Any

import pytest

from tertulia.model.changes import ChannelChanged, RealmChanged, UserGroupCreated
from tertulia.model.groups import Members, SystemGroup, UserGroup
from tertulia.model.users import Role
from tests.support import Organization, Person, founded, TestClock

async def test_try(org: Organization) -> None:
    (await org["ben"].post("/invites", invitee_emails="zoe@example.com, ", stream_ids=[])).ok
    print((await org["ann"].get("/invites")).ok)
    link=(await org["ann"].post("/invites/multiuse", invite_expires_in_minutes="null")).ok["invite_link"]
    print(link, (await org["ann"].get("/invites")).ok)
    r = await org.http.get(link); print(r.status_code, r.text)
    r = await org.http.post(link, data={"email":"x@example.com","full_name":"Xe","password":"secret words"}); print(r.status_code, r.text)
    inv=org.node.state.invitations[1]
    r = await org.http.post(org.node.links.invitation("http://chat.test",inv), data={"email":"x@example.com","full_name":"Zoe","password":"secret words"}); print(r.status_code, r.text)
    print((await org["ben"].get("/messages", anchor="newest",num_before=4,num_after=0)).ok["messages"])
    import pathlib
    for f in (org.node.config.data_path/"mail").glob("*"): print(f.read_text())
    assert 0
