"""All changes, and entries of the log. A change is a fact in the past tense.

Folding a change needs only the state before it. It may be projected later, from a later state, so
it contains everything that can't be derived then, such as users who gained or lost sight of a
channel. Changes are declared with their nouns, and imported from here.
"""

from typing import TYPE_CHECKING, Union

from msgspec import Struct

from tertulia.model.access_keys import *
from tertulia.model.attachments import *
from tertulia.model.banners import *
from tertulia.model.call_accounts import *
from tertulia.model.change import Change
from tertulia.model.channels import *
from tertulia.model.devices import *
from tertulia.model.drafts import *
from tertulia.model.edits import *
from tertulia.model.exports import *
from tertulia.model.feeds import *
from tertulia.model.folders import *
from tertulia.model.groups import *
from tertulia.model.identities import *
from tertulia.model.imports import *
from tertulia.model.invitations import *
from tertulia.model.messages import *
from tertulia.model.organization import *
from tertulia.model.personal import *
from tertulia.model.pins import *
from tertulia.model.profiles import *
from tertulia.model.queues import *
from tertulia.model.reactions import *
from tertulia.model.scheduled import *
from tertulia.model.second_factors import *
from tertulia.model.sessions import *
from tertulia.model.user_topics import *
from tertulia.model.users import *

if TYPE_CHECKING:
    AnyChange = Change
else:
    AnyChange = Union[tuple(Change.__subclasses__())]
    """A union, so that it can be decoded."""

OnMessage = ReactionAdded | ReactionRemoved | SubmessageAdded | MessagePinned | MessageUnpinned
"""Changes that add to a message, or undo that. In an entry that is read from the database, `gone`
and `moved_to` say what has happened to the message since."""


class Entry(Struct, frozen=True):
    """A change with its sequence number in the log."""

    seq: int
    """1, 2, 3, … without gaps."""
    at: float
    """UNIX seconds."""
    actor_id: int | None
    """None for the server itself."""
    change: AnyChange
