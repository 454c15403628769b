"""Messages keep the people and channels that they mention and link, even if these were renamed."""

import pytest

from tertulia.imports.records import SourceNames
from tertulia.imports.zulip.former_names import names_in
from tertulia.markup.former_names import FormerNames
from tertulia.markup.render import Renderer
from tertulia.state.decision import CommandContext
from tests.support import Organization

CONTENT = "@**Old Ann** and @_**Ben|12**, @*old cooks*, #**old square>t**, :gone: at 12:30"
RENDERED = (
    '<p><span class="user-mention" data-user-id="11">@Old Ann</span> and '
    '<span class="user-mention silent" data-user-id="12">Ben</span>, '
    '<span class="user-group-mention" data-user-group-id="31">@old cooks</span>, '
    '<a class="stream-topic" data-stream-id="21" href="/#narrow/channel/21-old-square/topic/t">'
    '#old square &gt; t</a>, <img alt=":gone:" class="emoji" src="/user_avatars/2/1.png"'
    ' title="gone"> at 12:30</p>'
)


def test_the_html_of_an_export_says_what_names_meant() -> None:
    assert names_in(CONTENT, RENDERED) == SourceNames(
        users=(("Old Ann", 11), ("Ben", 12)),
        groups=(("old cooks", 31),),
        channels=(("old square", 21),),
        emoji=("gone",),
    )
    assert names_in(CONTENT, None) is None, "then they mean what they mean now"
    assert names_in("no names", RENDERED) is None
    crafted = '<span class="user-mention" data-user-id="9">@<img src=x></span>'
    assert names_in("@**a**", crafted) == SourceNames()


@pytest.mark.anyio
async def test_former_names_are_rendered_as_they_were(org: Organization) -> None:
    ann, ben = org["ann"], org["ben"]
    square = await org.channel("square", "ann", "ben")
    names = FormerNames(
        users={"Old Ann": (ann.user_id,), "Twins": (ann.user_id, ben.user_id)},
        channels={"old square": (square, "old square")},
    )
    context = CommandContext(org.node.state, 0, ann.user_id)

    def html(content: str) -> str:
        return Renderer().render(context, content, names=names).html

    mention = f'data-user-id="{ann.user_id}">@Old Ann</span>'
    assert mention in html("@**Old Ann**")
    assert f'data-user-id="{ben.user_id}">@Twins</span>' in html(f"@**Twins|{ben.user_id}**")
    assert f'data-stream-id="{square}"' in html("#**Old Square>t**")
    # People who got the name later weren't mentioned.
    assert "<span" not in html("@**Ben** @*cooks*")
    assert "<a" not in html("#**square**")
    assert "channel-wildcard-mention" in html("@**all**")
