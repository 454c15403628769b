"""Alert words in message texts."""

from tertulia.model.personal import AlertWords
from tertulia.state.state import State


def test_an_index_without_words_alerts_nobody() -> None:
    assert State().alerts.alerted_by("anything") == set()


def test_words_of_several_people_are_found() -> None:
    state = State()
    state.alert_words.put(AlertWords(user_id=1, words=("tea", "tea time")))
    state.alert_words.put(AlertWords(user_id=2, words=("TEA",)))
    state.alert_words.put(AlertWords(user_id=3, words=("teapot", "!!")))
    assert state.alerts.alerted_by("Tea?") == {1, 2}
    assert state.alerts.alerted_by("teapot") == {3}
    assert state.alerts.alerted_by("wait!!") == set()
    assert state.alerts.alerted_by("wait !!") == {3}


def test_a_removed_word_alerts_nobody() -> None:
    state = State()
    state.alert_words.put(AlertWords(user_id=1, words=("tea", "c++", "++")))
    state.alert_words.remove(1)
    assert state.alerts.users_by_word == {}
    assert state.alerts._words_by_run == {}


def test_a_word_of_two_people_remains_for_the_other() -> None:
    state = State()
    for user_id in (1, 2):
        state.alert_words.put(AlertWords(user_id=user_id, words=("tea",)))
    state.alert_words.put(AlertWords(user_id=1, words=("cake",)))
    assert state.alerts.alerted_by("tea and cake") == {1, 2}
    assert state.alerts.alerted_by("tea") == {2}
