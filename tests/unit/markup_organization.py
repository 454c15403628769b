"""An organization in memory for tests of Markdown rendering."""

from tertulia.markup.render import Renderer
from tertulia.model.attachments import Attachment, ImageInfo
from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.groups import SYSTEM_GROUPS, Members, UserGroup
from tertulia.model.messages import Rendered
from tertulia.model.organization import Linkifier, Realm
from tertulia.model.reactions import CustomEmoji
from tertulia.model.users import PersonalSettings, User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

ANN, BEN, EVE = 110, 111, 114
SITE = "https://chat.example"
FILES = {
    "pic.png": ("image/png", ImageInfo(width=1000, height=500, animated=False)),
    "move.gif": ("image/gif", ImageInfo(width=64, height=64, animated=True)),
    "scan.tiff": ("image/tiff", ImageInfo(width=30, height=40, animated=False)),
    "film.mp4": ("video/mp4", None),
    "sound.mp3": ("audio/mpeg", None),
    "notes.pdf": ("application/pdf", None),
}
"""Uploaded files, by name."""


def path(name: str) -> str:
    """The address of one of the files."""
    return f"/user_uploads/1/ab/key-{name[:2]}/{name}"


def organization() -> State:
    """A new organization."""
    state = State()
    state.realms.put(Realm(uuid="u", name="Tertulia", created_at=0))
    for user in (
        User(id=ANN, address="ann@example.com", full_name="Ann"),
        User(id=BEN, address="b@example.com", full_name="Ben <B>"),
        User(id=112, address="c@example.com", full_name="Twin"),
        User(id=113, address="d@example.com", full_name="Twin"),
        User(id=EVE, address="e@example.com", full_name="Eve"),
    ):
        state.users.put(user)
    state.settings.put(PersonalSettings(user_id=EVE, translate_emoticons=True))
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    for group in (
        UserGroup(id=20, name="cooks", members=(ANN, BEN)),
        UserGroup(id=21, name="gone", deactivated=True),
        UserGroup(id=22, name="quiet", can_mention_group=Members(direct_members=(EVE,))),
    ):
        state.groups.put(group)
    for channel in (
        Channel(id=3, name="tea & cake v1.0", created_at=0),
        Channel(id=4, name="secret", created_at=0, is_private=True),
    ):
        state.channels.put(channel)
    state.subscriptions.put(
        Subscription(channel_id=4, user_id=EVE, spans=((0, None),), color="#123456")
    )
    state.topics.put(
        Topic(channel_id=3, key="now", name="now", last_message_id=77, message_count=1)
    )
    state.topics.put(Topic(channel_id=3, key="", name="", last_message_id=78, message_count=1))
    for number, (pattern, template) in enumerate(
        [
            (r"#(?P<id>[0-9]+)", "https://bugs.example/{id}"),
            (r"[Tt]icket (?P<id>[0-9]+)", "https://tickets.example/{?id}"),
            (r"(?P<word>[A-Z]+)-(?P<id>[0-9]+)", "https://both.example/{word}/{id}"),
            (r"X-[0-9]+", "https://late.example"),
            (r"evil", "javascript:alert(1)"),
        ],
        start=1,
    ):
        state.linkifiers.put(
            Linkifier(id=number, order=number, pattern=pattern, url_template=template)
        )
    state.custom_emoji.put(CustomEmoji(id=5, name="party_bird", file="5.gif"))
    state.custom_emoji.put(CustomEmoji(id=6, name="retired", file="6.png", deactivated=True))
    state.custom_emoji.put(CustomEmoji(id=7, name="tada", file="7.png"))
    for number, (name, (media_type, picture)) in enumerate(FILES.items(), start=1):
        state.attachments.put(
            Attachment(
                id=number,
                user_id=ANN,
                name=name,
                path=path(name).removeprefix("/user_uploads/"),
                size=1,
                media_type=media_type,
                created_at=0,
                picture=picture,
            )
        )
    return state


STATE = organization()
RENDERER = Renderer(SITE, in_place=True)
SERVING = Renderer(SITE)
"""As in a server, where code and formulas must be prepared."""


def rendered(content: str, author_id: int | None = ANN, state: State = STATE) -> Rendered:
    """What the author writes, rendered."""
    return RENDERER.render(CommandContext(state, 0, author_id), content)


def html(content: str, author_id: int | None = ANN) -> str:
    """The rendered HTML."""
    return rendered(content, author_id).html


def line(content: str, author_id: int | None = ANN) -> str:
    """The HTML of one paragraph, without its tags."""
    shown = html(content, author_id)
    assert shown.startswith("<p>")
    assert shown.endswith("</p>")
    return shown[3:-4]
