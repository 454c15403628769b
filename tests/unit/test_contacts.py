"""Which people share a channel, updated with every change."""

import random
from itertools import pairwise

from tertulia.model.channels import Subscription
from tertulia.model.messages import DirectConversation
from tertulia.state.state import State
from tertulia.state.user_visibility import bitmap, id_ranges


def shared(state: State, user_id: int) -> set[int]:
    """Return who shares a channel, computed from scratch."""
    found: set[int] = set()
    for one in state.subscriptions:
        if one.is_active and one.user_id == user_id:
            others = (other for other in state.subscriptions if other.is_active)
            found.update(o.user_id for o in others if o.channel_id == one.channel_id)
    for direct in state.directs:
        if user_id in direct.members:
            found.update(direct.members)
    return found


def test_contacts_equal_a_fresh_computation() -> None:
    rng = random.Random(7)
    state = State()
    for turn in range(1500):
        channel_id, user_id = rng.randint(1, 5), rng.randint(1, 12)
        if rng.random() < 0.02:
            members = tuple(sorted(rng.sample(range(1, 13), rng.randint(1, 3))))
            if members not in state.directs.by_members:
                state.directs.put(DirectConversation(id=state.directs.next_id(), members=members))
        spans = ((0, None),) if rng.random() < 0.4 else ()
        state.subscriptions.put(
            Subscription(channel_id=channel_id, user_id=user_id, color="", spans=spans)
        )
        if turn % rng.randint(1, 4) == 0:
            for one in rng.sample(range(1, 13), 4):
                assert set(state.contacts.of(one)) == shared(state, one), turn


def test_a_new_member_costs_the_same_in_any_organization() -> None:
    state = State()
    for user_id in range(1, 51):
        state.subscriptions.put(
            Subscription(channel_id=1, user_id=user_id, color="", spans=((0, None),))
        )
        state.contacts.of(user_id)
    merged = state.contacts.merged
    for user_id in range(51, 5051):
        state.subscriptions.put(
            Subscription(channel_id=1, user_id=user_id, color="", spans=((0, None),))
        )
    assert all(len(state.contacts.of(user_id)) == 5050 for user_id in range(1, 51))
    assert state.contacts.merged == merged


def test_ranges_contain_exactly_the_ids() -> None:
    rng = random.Random(3)
    for _ in range(100):
        user_ids = {rng.randint(1, 40) for _ in range(rng.randint(0, 40))}
        found = id_ranges(bitmap((one, one) for one in user_ids))
        assert set(bitmap(found)) == user_ids
        assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))
