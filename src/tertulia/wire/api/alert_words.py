"""Alert words: words that notify a user when a message contains them."""

from typing import Annotated, Any, Final

from msgspec import Meta

from tertulia.domain.accounts import personal
from tertulia.model.changes import AlertWordsChanged
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.routing import ApiResponse, Call


class AlertWordsEvent(Event, kw_only=True, tag="alert_words"):
    """Your alert words changed. Contains all of them."""

    alert_words: list[str]


class AlertWordsResponse(ApiResponse, kw_only=True):
    """All of your alert words."""

    alert_words: list[str]


async def get_alert_words(call: Call) -> AlertWordsResponse:
    """Get your alert words."""
    return AlertWordsResponse(alert_words=call.consider(personal.own_alert_words))


async def add_alert_words(
    call: Call,
    alert_words: Annotated[
        list[str],
        Meta(max_length=personal.MAX_ALERT_WORDS, description="The case of letters is ignored."),
    ],
) -> AlertWordsResponse:
    """Add alert words. Messages that contain one of them notify you."""
    return AlertWordsResponse(alert_words=await call.submit(personal.add_alert_words, alert_words))


async def remove_alert_words(
    call: Call,
    alert_words: Annotated[
        list[str],
        Meta(max_length=personal.MAX_ALERT_WORDS, description="The case of letters is ignored."),
    ],
) -> AlertWordsResponse:
    """Remove alert words."""
    return AlertWordsResponse(
        alert_words=await call.submit(personal.remove_alert_words, alert_words)
    )


def alert_words_section(context: SectionContext) -> dict[str, Any]:
    alert_words = context.state.alert_words.get(context.viewer_id)
    return {"alert_words": list(alert_words.words) if alert_words else []}


SECTIONS: Final[Sections] = {("alert_words",): alert_words_section}


PROJECTIONS: Final[Projections] = (
    to_owner(AlertWordsChanged, lambda _, change: AlertWordsEvent(alert_words=list(change.words))),
)
