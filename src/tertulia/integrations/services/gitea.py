"""Gitea, Forgejo, and Gogs, whose payloads are like GitHub's."""

from collections.abc import Mapping
from typing import Final

from tertulia.integrations.forge import (
    BODY,
    COMMENT,
    COMMENTED,
    REQUESTED,
    CodeHost,
    Item,
    Writer,
    action_or,
    branch_event,
    branch_of,
    commits_in,
    dispatched,
    pushed,
    request_action,
)
from tertulia.integrations.incoming import Integration, Post
from tertulia.integrations.payloads import Part, code, link
from tertulia.integrations.signatures import any_of, hmac_hex

_HOST: Final = CodeHost(
    "{sender.login|sender.username|pusher.login|pusher.username|Someone}",
    "{repository.name}",
    "number",
    ("html_url", "url"),
)
_CHANGED: Final = {
    "*": "{who} {action} {item}",
    **dict.fromkeys(("label_updated", "label_cleared", "synchronized", "synchronize"), ""),
    "assigned": "{who} assigned {thing.assignee.login|thing.assignee.username|someone} to {item}",
    "unassigned": "{who} removed the assignee from {item}",
    "milestoned": "{who} added milestone {thing.milestone.title|} to {item}",
    "demilestoned": "{who} removed the milestone from {item}",
}


def _push(payload: Part) -> Post | None:
    ref, url = payload.word("ref"), payload.url("compare_url")
    name, who = payload.fill(_HOST.repository), payload.fill(_HOST.who)
    branch = branch_of(ref)
    if ref.startswith("refs/tags/"):
        return Post(name, f"{who} pushed tag {link(code(branch), url)}.", "push")
    total = int(payload.number("total_commits", 0))
    text = pushed(who, branch, url, commits_in(payload), total=total, forced=False)
    return Post(f"{name} / {branch}", text, "push", branch)


def _review(verb: str, event: str) -> Writer:
    return _HOST.writer(
        event,
        f"{{who}} {verb} {{item}}",
        item=Item("pull_request", "PR"),
        body="review.content",
    )


def _commented_item(payload: Part) -> Item:
    path = "issue" if payload.find("issue") else "pull_request"
    is_request = payload.flag("is_pull") or path == "pull_request"
    return Item(path, "PR" if is_request else "issue")


def _comment(event: str) -> Writer:
    return _HOST.writer(
        event, COMMENTED, action=action_or("created"), item=_commented_item, body=COMMENT
    )


WRITERS: Final[Mapping[str, Writer]] = {
    "create": branch_event(_HOST, "create", "src/{kind}/{name}"),
    "delete": branch_event(_HOST, "delete"),
    "fork": _HOST.writer(
        "fork",
        "{who} forked {forkee.full_name} to [{repository.full_name}]({repository.html_url})",
        topic="{forkee.name}",
    ),
    "issue_comment": _comment("issue_comment"),
    "issues": _HOST.writer("issues", _CHANGED, item=Item("issue", "issue"), body=BODY),
    "pull_request": _HOST.writer(
        "pull_request",
        {**_CHANGED, **REQUESTED},
        action=request_action,
        item=Item("pull_request", "PR"),
        body=BODY,
    ),
    "pull_request_approved": _review("approved", "pull_request_approved"),
    "pull_request_comment": _comment("pull_request_comment"),
    "pull_request_rejected": _review("requested changes to", "pull_request_rejected"),
    "push": _push,
    "release": _HOST.writer(
        "release",
        {
            "*": "{who} {action} release [{release.name|release.tag_name|}]({release.html_url})"
            " for tag `{release.tag_name}`"
        },
        action=action_or("published"),
        body={"published": "release.body"},
    ),
    "repository": _HOST.writer(
        "repository",
        "{who} {action} the repository [{repository.full_name}]({repository.html_url})",
    ),
}
_ALSO: Final = {
    "issue_assign": "issues",
    "issue_milestone": "issues",
    "pull_request_assign": "pull_request",
    "pull_request_milestone": "pull_request",
    "pull_request_review_request": "pull_request",
    "pull_request_review_approved": "pull_request_approved",
    "pull_request_review_rejected": "pull_request_rejected",
}
_NO_MESSAGE: Final = frozenset(
    {"issue_label", "pull_request_label", "pull_request_sync", "pull_request_review_comment"}
)
"""Events without a message: labels, and events that a review or push includes."""
_SIGNED: Final = any_of(
    hmac_hex("x-hub-signature-256", "sha256="),
    hmac_hex("x-gitea-signature"),
    hmac_hex("x-forgejo-signature"),
    hmac_hex("x-gogs-signature"),
)


def _integration(title: str, *headers: str) -> Integration:
    translate = dispatched(
        headers, WRITERS, quiet=_NO_MESSAGE, named=lambda event, _: _ALSO.get(event, event)
    )
    return Integration(title.lower(), title, translate, tuple(WRITERS), _SIGNED, True)


GITEA: Final = _integration("Gitea", "x-gitea-event", "x-gogs-event")
FORGEJO: Final = _integration("Forgejo", "x-forgejo-event", "x-gitea-event")
GOGS: Final = _integration("Gogs", "x-gogs-event")
