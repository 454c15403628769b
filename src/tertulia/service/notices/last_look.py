"""What is looked at once more when something is about to leave the server."""

from tertulia.domain.notices import rules, telling
from tertulia.domain.notices.rules import Reason, Way
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.messages.flags import is_read
from tertulia.state.organization import State
from tertulia.store import queries


def reason_now(
    state: State, user: User, message: Message, relation: queries.Relation, way: Way
) -> Reason | None:
    """Why the user is told of the message in that way; None where they are not, as of now: they
    have read it, may not read it, or do not want to be told."""
    if not telling.may_be_told(state, user.id, message) or is_read(
        state, user.id, message, relation
    ):
        return None
    found = rules.concerned(state, message, {user.id: relation.flags}, way)
    return next((reason for reason, people in found.items() if user.id in people), None)
