"""Folders, channels, groups and custom emoji of the demonstration."""

from typing import Final, NamedTuple

GENERAL: Final = "general"


class ChannelPlan(NamedTuple):
    """A channel to be created."""

    name: str
    description: str
    folder: str
    members: str
    """Names, or `*` for the whole team."""
    made_at: str
    is_private: bool = False
    archived_at: str = ""
    announced: bool = False


FOLDERS: Final = (
    ("Behind the counter", "Where the work is done."),
    ("Front of house", "What the guests see of it."),
)
BEHIND, FRONT = FOLDERS[0][0], FOLDERS[1][0]
CHANNELS: Final = (
    ChannelPlan(
        "kitchen",
        "What we bake, brew and run out of. The oven writes here, too.",
        BEHIND,
        "iris marco june lucia layla arjun haruka zola saga pia oven",
        "-14 08:00",
    ),
    ChannelPlan(
        "recipes",
        "One topic is one recipe. **Weigh, don't guess.**",
        BEHIND,
        "iris june layla arjun haruka lucia oksana saga pia",
        "-14 08:02",
    ),
    ChannelPlan(
        "workshop",
        "Machines and programs: whatever has a screw or a semicolon in it.",
        BEHIND,
        "iris marco minh haruka june zola",
        "-14 08:04",
    ),
    ChannelPlan(
        "deliveries",
        "Who brings what, and when. The doorbell writes here.",
        BEHIND,
        "iris marco june theo lucia arjun zola doorbell",
        "-14 08:06",
    ),
    ChannelPlan(
        "evenings",
        "Readings, music and the conversation that gave us our name.",
        FRONT,
        "iris marco june oksana haruka layla minh lucia",
        "-14 08:08",
    ),
    ChannelPlan(
        "long table",
        "Everything that is not work. :miga: is on topic, always.",
        FRONT,
        "*",
        "-14 08:10",
    ),
    ChannelPlan(
        "numbers",
        "Rent, tax, and what is left. Please don't quote from here.",
        "",
        "iris lucia marco",
        "-14 08:12",
        is_private=True,
    ),
    ChannelPlan(
        "summer terrace",
        "Eight tables, four parasols, one wasp. Until next year!",
        FRONT,
        "iris marco june lucia zola haruka pia",
        "-14 08:14",
        archived_at="-9 18:00",
    ),
    ChannelPlan(
        "winter menu",
        "What is on the board from December on: ideas, tastings, decisions.",
        FRONT,
        "iris june layla arjun haruka theo lucia marco saga",
        "-2 09:00",
        announced=True,
    ),
)
GROUPS: Final = (
    ("baristas", "Who can be called to the bar", "marco haruka zola saga iris"),
    ("bakers", "Who can be called to the oven", "june layla arjun"),
)
EMOJI: Final = ("tertulia", "miga", "burnt_toast")
"""Custom emoji, drawn by `portraits`."""
