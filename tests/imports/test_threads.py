"""The names of topics for imported threads."""

import pytest

from tertulia.domain import names
from tertulia.imports.threads import ThreadTopics, topic_of


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Lunch on **Friday**?", "Lunch on Friday?"),
        ("\n\n> quoted\nanswer", "quoted"),
        ("## Plan\n- one", "Plan"),
        ("---\n***\nNow words", "Now words"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("see [the docs](https://example.com/a_(b)) now", "see the docs) now"),
        ("![](https://example.com/a.png)", "Thread"),
        ("", "Thread"),
        ("a_b and _emphasis_ and snake_case_", "a_b and emphasis and snake_case"),
        ("bad\u202eorder\x07 and\u200b more", "badorder and more"),
        ("x" * 200, "x" * 59 + "…"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("\ud800 lone", "lone"),
    ],
)
def test_a_topic_is_named_by_the_first_line_with_words(text: str, topic: str) -> None:
    assert topic_of(text) == topic
    assert names.topic_name(topic) == topic


def test_threads_with_the_same_beginning_get_numbers() -> None:
    topics = ThreadTopics()
    assert topics.topic("a", 1, "Good morning") == "Good morning"
    assert topics.topic("a", 2, "good *morning*") == "good morning (2)"
    assert topics.topic("a", 3, "Good morning (3)") == "Good morning (3)"
    assert topics.topic("a", 4, "Good morning") == "Good morning (4)"
    assert topics.topic("a", 2, "something else") == "good morning (2)"
    assert topics.topic("b", 2, "Good morning") == "Good morning"
    long = ["y" * 80] * 12
    found = [topics.topic("c", n, text) for n, text in enumerate(long)]
    assert len(set(found)) == 12
    assert max(map(len, found)) <= names.MAX_TOPIC
    topics.close()
