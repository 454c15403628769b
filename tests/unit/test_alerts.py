"""Whom a text alerts."""

from tertulia.model.personal import AlertWords
from tertulia.state.alerts import Alerts


def test_an_index_without_words_alerts_nobody() -> None:
    assert Alerts().alerted_by("anything") == set()


def test_words_of_many_are_found_together() -> None:
    alerts = Alerts()
    alerts.index(None, AlertWords(user_id=1, words=("tea", "tea time")))
    alerts.index(None, AlertWords(user_id=2, words=("TEA",)))
    alerts.index(None, AlertWords(user_id=3, words=("teapot", "!!")))
    assert alerts.alerted_by("Tea?") == {1, 2}
    assert alerts.alerted_by("teapot") == {3}
    assert alerts.alerted_by("wait!!") == set()
    assert alerts.alerted_by("wait !!") == {3}


def test_what_was_removed_leaves_nothing_behind() -> None:
    alerts = Alerts()
    words = AlertWords(user_id=1, words=("tea", "c++", "++"))
    alerts.index(None, words)
    alerts.index(words, None)
    assert alerts.users_by_word == {}
    assert alerts._words_by_run == {}


def test_a_word_of_two_stays_for_the_other() -> None:
    alerts = Alerts()
    both = [AlertWords(user_id=n, words=("tea",)) for n in (1, 2)]
    for words in both:
        alerts.index(None, words)
    alerts.index(both[0], AlertWords(user_id=1, words=("cake",)))
    assert alerts.alerted_by("tea and cake") == {1, 2}
    assert alerts.alerted_by("tea") == {2}
