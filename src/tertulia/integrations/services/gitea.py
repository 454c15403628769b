"""Gitea, Forgejo, and Gogs, whose payloads are like GitHub's."""

from collections.abc import Callable, Mapping
from typing import Final

from tertulia.integrations.forge import (
    Writer,
    branch_deleted,
    branch_made,
    branch_of,
    branch_topic,
    commented,
    commits_in,
    dispatched,
    pushed,
    said,
    topic_of,
)
from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, title_case
from tertulia.integrations.signatures import any_of, hmac_hex

_QUIET: Final = frozenset({"label_updated", "label_cleared", "synchronized", "synchronize"})


def _name(payload: Part) -> str:
    return payload.line("repository.name")


def _who(payload: Part) -> str:
    return payload.first("sender.login", "sender.username", "pusher.login", "pusher.username")


def _push(payload: Part) -> Post | None:
    ref, name = payload.word("ref"), _name(payload)
    branch = branch_of(ref)
    if ref.startswith("refs/tags/"):
        text = f"{_who(payload)} pushed tag {link(code(branch), payload.url('compare_url'))}."
        return Post(name, text, "push")
    commits = commits_in(payload)
    total = int(payload.number("total_commits", 0))
    url = payload.url("compare_url")
    text = pushed(_who(payload), branch, url, commits, total=total, forced=False)
    return Post(f"{name} / {branch}", text, "push", branch)


def _create(payload: Part) -> Post | None:
    kind, ref, name = payload.line("ref_type"), branch_of(payload.line("ref")), _name(payload)
    topic = branch_topic(name, ref if kind == "branch" else "")
    url = payload.url("repository.html_url")
    tree = f"{url}/src/{kind}/{ref}" if url else ""
    return Post(topic, branch_made(_who(payload), kind, ref, tree), "create")


def _delete(payload: Part) -> Post | None:
    kind, ref, name = payload.line("ref_type"), branch_of(payload.line("ref")), _name(payload)
    topic = branch_topic(name, ref if kind == "branch" else "")
    return Post(topic, branch_deleted(_who(payload), kind, ref), "delete")


def _fork(payload: Part) -> Post | None:
    original = payload.line("forkee.full_name")
    where = link(payload.line("repository.full_name"), payload.url("repository.html_url"))
    return Post(
        payload.line("forkee.name"), f"{_who(payload)} forked {original} to {where}.", "fork"
    )


def _titled(thing: Part) -> str:
    text = f"#{thing.line('number')} {thing.line('title')}"
    return link(text, thing.url("html_url") or thing.url("url"))


def _topic(payload: Part, thing: Part, kind: str) -> str:
    return topic_of(_name(payload), kind, f"#{thing.line('number')}", thing.line("title"))


def _issues(payload: Part) -> Post | None:
    issue = payload.part("issue")
    return _changed(payload, issue, "issue", f"issue {_titled(issue)}", "issues")


def _changed(payload: Part, thing: Part, kind: str, titled: str, event: str) -> Post | None:
    action, who = payload.word("action"), _who(payload)
    if action in _QUIET:
        return None
    topic = _topic(payload, thing, kind)
    body = thing.text("body", "") if action in {"opened", "edited"} else ""
    match action:
        case "assigned":
            whom = thing.line("assignee.login", thing.line("assignee.username", "someone"))
            what = f"assigned {whom} to {titled}"
        case "unassigned":
            what = f"removed the assignee from {titled}"
        case "milestoned":
            what = f"added milestone {thing.line('milestone.title', '')} to {titled}"
        case "demilestoned":
            what = f"removed the milestone from {titled}"
        case "review_requested":
            whom = payload.line("requested_reviewer.login", "someone")
            what = f"requested a review from {whom} on {titled}"
        case "review_request_removed":
            whom = payload.line("requested_reviewer.login", "someone")
            what = f"removed the review request for {whom} on {titled}"
        case _:
            what = f"{title_case(action).lower()} {titled}"
    return Post(topic, said(who, what, body), event)


def _pull_request(payload: Part) -> Post | None:
    request = payload.part("pull_request")
    titled, topic, who = f"PR {_titled(request)}", _topic(payload, request, "PR"), _who(payload)
    base = request.line("base.ref", request.line("base_branch", ""))
    head = request.line("head.ref", request.line("head_branch", ""))
    action = payload.word("action")
    if action == "opened":
        what = f"opened {titled} from {code(head)} to {code(base)}"
        return Post(topic, said(who, what, request.text("body", "")), "pull_request")
    if action == "closed":
        merged = request.flag("merged")
        text = (
            f"merged {titled} into {code(base)}" if merged else f"closed {titled} without merging"
        )
        return Post(topic, f"{who} {text}.", "pull_request")
    return _changed(payload, request, "PR", titled, "pull_request")


def _review(verb: str, event: str) -> Writer:
    def write(payload: Part) -> Post | None:
        request = payload.part("pull_request")
        body = payload.text("review.content", "")
        text = said(_who(payload), f"{verb} PR {_titled(request)}", body)
        return Post(_topic(payload, request, "PR"), text, event)

    return write


def _comment(event: str) -> Writer:
    def write(payload: Part) -> Post | None:
        issue = payload.find("issue") or payload.part("pull_request")
        is_request = payload.flag("is_pull") or payload.find("issue") is None
        kind = "PR" if is_request else "issue"
        on, topic = f"{kind} {_titled(issue)}", _topic(payload, issue, kind)
        return commented(payload, _who(payload), topic, on, event)

    return write


def _release(payload: Part) -> Post | None:
    release = payload.part("release")
    tag = release.line("tag_name")
    name = release.line("name", tag) or tag
    action = title_case(payload.line("action", "published")).lower()
    named = link(name, release.url("html_url"))
    body = release.text("body", "") if action == "published" else ""
    what = f"{action} release {named} for tag {code(tag)}"
    return Post(_name(payload), said(_who(payload), what, body), "release")


def _repository(payload: Part) -> Post | None:
    name = link(payload.line("repository.full_name"), payload.url("repository.html_url"))
    text = f"{_who(payload)} {payload.line('action')} the repository {name}."
    return Post(_name(payload), text, "repository")


WRITERS: Final[Mapping[str, Writer]] = {
    "create": _create,
    "delete": _delete,
    "fork": _fork,
    "issue_comment": _comment("issue_comment"),
    "issues": _issues,
    "pull_request": _pull_request,
    "pull_request_approved": _review("approved", "pull_request_approved"),
    "pull_request_comment": _comment("pull_request_comment"),
    "pull_request_rejected": _review("requested changes to", "pull_request_rejected"),
    "push": _push,
    "release": _release,
    "repository": _repository,
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
"""Events without a message: labels, and what a review or push includes."""


def _translated(*headers: str) -> Callable[[WebhookRequest], Translated]:
    return dispatched(
        headers, WRITERS, quiet=_NO_MESSAGE, named=lambda event, _: _ALSO.get(event, event)
    )


_SIGNED: Final = any_of(
    hmac_hex("x-hub-signature-256", "sha256="),
    hmac_hex("x-gitea-signature"),
    hmac_hex("x-forgejo-signature"),
    hmac_hex("x-gogs-signature"),
)
GITEA: Final = Integration(
    "gitea", "Gitea", _translated("x-gitea-event", "x-gogs-event"), tuple(WRITERS), _SIGNED, True
)
FORGEJO: Final = Integration(
    "forgejo",
    "Forgejo",
    _translated("x-forgejo-event", "x-gitea-event"),
    tuple(WRITERS),
    _SIGNED,
    True,
)
GOGS: Final = Integration(
    "gogs", "Gogs", _translated("x-gogs-event"), tuple(WRITERS), _SIGNED, True
)
