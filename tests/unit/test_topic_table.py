"""Topics in memory: most are packed, and all are found."""

import copy
import random
import tracemalloc

import msgspec
import pytest

from tertulia.model.channels import Topic, topic_key
from tertulia.model.nouns import Noun
from tertulia.state import topics
from tertulia.state.topics import ChannelTopics, TopicTable

NAMES = ["", "General", "Straße", "STRASSE", "K\u212aelvin", "été", "日本語", "✔ done", "a" * 60]


def topic(name: str, last: int = 1, count: int = 1, channel_id: int = 7) -> Topic:
    return Topic(
        channel_id=channel_id,
        key=topic_key(name),
        name=name,
        last_message_id=last,
        message_count=count,
    )


def check(found: ChannelTopics, expected: dict[str, Topic], key: str) -> None:
    assert len(found) == len(expected)
    assert (found.get(key), key in found) == (expected.get(key), key in expected)


def test_topics_are_a_mapping() -> None:
    rng = random.Random(1)
    names = [*NAMES, *(f"Topic {n}" for n in range(1500))]
    found = ChannelTopics(7)
    expected: dict[str, Topic] = {}
    for n in range(12_000):
        made = topic(rng.choice(names), rng.randrange(2**40), rng.randrange(2**33))
        if rng.random() < (0.8 if n < 6000 else 0.4):
            found[made.key] = expected[made.key] = made
        else:
            assert found.pop(made.key, None) == expected.pop(made.key, None)
        check(found, expected, made.key)
        if n % 1000 == 0:
            assert {one.key: one for one in found.values()} == expected
            assert sorted(found) == sorted(expected)
            assert dict(found) == expected
    for key in [*expected]:
        del found[key], expected[key]
        check(found, expected, key)
    with pytest.raises(KeyError):
        del found["general"]
    with pytest.raises(KeyError):
        found["general"]
    assert not any(found)


def test_keys_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "hash", len, raising=False)
    found = ChannelTopics(7)
    expected = {made.key: made for made in (topic(f"topic {n:04}") for n in range(300))}
    found.update(expected)
    assert dict(found) == expected
    for key in [*expected][::3]:
        del found[key], expected[key]
    assert dict(found) == expected
    assert found.get("topic 0000") is None


def test_a_topic_with_the_key_of_another_unicode_version_is_found() -> None:
    found = ChannelTopics(7)
    odd = msgspec.structs.replace(topic("Odd!"), key="odd")
    found["odd"] = odd
    found.update({made.key: made for made in (topic(f"topic {n}") for n in range(500))})
    assert (found.get("odd"), len(found)) == (odd, 501)
    assert "odd!" not in found


def test_a_copy_leaves_the_original_alone() -> None:
    found = ChannelTopics(7)
    expected = {made.key: made for made in (topic(f"topic {n}") for n in range(500))}
    found.update(expected)
    copied = copy.copy(found)
    for n in range(0, 600, 2):
        copied[f"topic {n}"] = topic(f"topic {n}", last=2)
    del copied["topic 1"]
    assert dict(found) == expected
    assert len(copied) == 549


def test_packed_topics_take_little_memory() -> None:
    found = ChannelTopics(7)
    tracemalloc.start()
    try:
        for n in range(20_000):
            made = topic(f"How do we release version {n}?", 10**6 + n, 3)
            found[made.key] = made
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(found) < 120


def test_resolved_topics_are_listed_while_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "MAX_LISTED", 2)
    table = TopicTable(Noun("topics", Topic, ("channel_id", "key")))
    assert table.resolved.listed == frozenset()
    table.put(topic("open"))
    table.put(topic("✔ Done"))
    table.put(topic("✔ Done", last=2))
    assert table.resolved.listed == frozenset({(7, "✔ done")})
    copied = table.with_records([topic("✔ Also")])
    assert copied.resolved.listed == frozenset({(7, "✔ done"), (7, "✔ also")})
    table.remove((7, "✔ done"))
    assert table.resolved.listed == frozenset()
    for n in range(3):
        table.put(topic(f"✔ {n}"))
    assert table.resolved.listed is None
