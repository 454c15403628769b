"""The rate and the estimate of an import."""

import msgspec

from tertulia.imports.progress import RECENT_SECONDS, Progress


def begun(messages: int = 0) -> Progress:
    progress = Progress(
        fingerprint="f", kind="zulip", origin="Zulip", step="messages", expected=1_000_000
    )
    progress.messages = messages
    progress.resume(1000)
    return progress


def write(progress: Progress, now: int, seconds: int, per_second: int) -> int:
    """Write messages every second, and return the time afterwards."""
    for second in range(1, seconds + 1):
        progress.wrote(per_second, now + second)
    return now + seconds


def test_the_estimate_follows_the_present_rate() -> None:
    progress = begun(400_000)
    assert progress.seconds_left(1000) is None
    now = write(progress, 1000, 600, 100)
    now = write(progress, now, 300, 1000)
    assert progress.rate(now) == (600 * 100 + 300 * 1000) / 900
    assert progress.recent_rate(now) == 1000
    assert progress.seconds_left(now) == 240


def test_the_start_of_an_import_has_no_estimate() -> None:
    """The processes for rendering start first, which would look like 96 hours left."""
    progress = begun(500_000)
    progress.wrote(500, 1020)
    assert progress.seconds_left(1020) is None
    progress.wrote(500, 1021)
    assert progress.seconds_left(1021) is None
    progress.wrote(19_000, 1040)
    assert progress.seconds_left(1040) == 480_000 / (19_500 / 20)


def test_it_keeps_a_few_moments_only() -> None:
    progress = begun()
    write(progress, 1000, 3600, 10)
    assert len(progress.recent) <= 15
    assert progress.recent[1][0] > 4600 - RECENT_SECONDS


def test_the_rate_is_known_after_a_long_pause() -> None:
    progress = begun()
    write(progress, 1000, 60, 10)
    progress.wrote(10, 100_000)
    assert progress.recent_rate(100_000)


def test_progress_that_an_earlier_version_stored_has_an_estimate() -> None:
    progress = begun()
    progress.wrote(100, 1010)
    stored = msgspec.to_builtins(progress)
    del stored["recent"]
    del stored["report"]["record"], stored["report"]["known"]
    assert msgspec.convert(stored, Progress).seconds_left(1020) == 999_900 / 5
