"""GitHub."""

from collections.abc import Callable, Mapping
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
    branch_deleted,
    branch_event,
    branch_of,
    branch_topic,
    commits_in,
    dispatched,
    pushed,
    request_action,
)
from tertulia.integrations.incoming import Integration, Post, Unsupported
from tertulia.integrations.payloads import Part, code, link, listed, with_quote
from tertulia.integrations.signatures import hmac_hex

_HOST: Final = CodeHost(
    "{sender.login|Someone}", "{repository.name|organization.login|GitHub}", "number", ("html_url",)
)
_PR: Final = Item("pull_request", "PR")
_DISCUSSION: Final = Item("discussion", "discussion")
_QUIET: Final = (
    *("labeled", "unlabeled", "synchronize", "auto_merge_enabled", "auto_merge_disabled"),
    *("subscribed", "unsubscribed", "typed", "untyped"),
)
"""Actions without a message."""
_MILESTONE: Final = "{milestone.title|thing.milestone.title|}"
_CHANGED: Final = {
    "*": "{who} {action} {item}",
    **dict.fromkeys(_QUIET, ""),
    "assigned": "{who} assigned {assignee.login|someone} to {item}",
    "unassigned": "{who} unassigned {assignee.login|someone} from {item}",
    "milestoned": f"{{who}} added milestone {_MILESTONE} to {{item}}",
    "demilestoned": f"{{who}} removed milestone {_MILESTONE} from {{item}}",
    "transferred": "{who} transferred {item} to"
    " {changes.new_repository.full_name|another repository}",
}
_ENDED: Final[Mapping[str, str]] = {
    "success": "succeeded",
    "failure": "failed",
    "error": "failed with an error",
    "neutral": "ended",
    "cancelled": "was canceled",
    "skipped": "was skipped",
    "timed_out": "timed out",
    "action_required": "requires action",
    "stale": "is out of date",
    "startup_failure": "failed to start",
}


def _push(payload: Part) -> Post | None:
    repository, ref = payload.fill(_HOST.repository), payload.word("ref")
    name = branch_of(ref)
    who = payload.fill("{pusher.name|sender.login|Someone}")
    if ref.startswith("refs/tags/"):
        verb = "removed" if payload.flag("deleted") else "pushed"
        tag = link(code(name), payload.url("compare") if verb == "pushed" else "")
        return Post(repository, f"{who} {verb} tag {tag}.", "push")
    topic = branch_topic(repository, name)
    if payload.flag("deleted"):
        return Post(topic, branch_deleted(who, "branch", name), "push", name)
    commits = commits_in(payload)
    text = pushed(who, name, payload.url("compare"), commits, forced=payload.flag("forced"))
    return Post(topic, text, "push", name)


def _comments(event: str, item: Item | Callable[[Part], Item] | None, on: str = "{item}") -> Writer:
    sentences = {action: text.replace("{item}", on) for action, text in COMMENTED.items()}
    return _HOST.writer(event, sentences, action=action_or("created"), item=item, body=COMMENT)


def _request_action(payload: Part) -> str:
    action = request_action(payload)
    return "drafted" if action == "opened" and payload.flag("pull_request.draft") else action


def _review_action(payload: Part) -> str:
    action, state = payload.word("action"), payload.word("review.state", "")
    if action not in {"dismissed", "edited", "submitted"}:
        raise Unsupported(f"pull_request_review:{action}")
    if action != "submitted":
        return action
    if state == "commented" and not payload.text("review.body", ""):
        return ""  # Its comments have their own events.
    return state if state in {"approved", "changes_requested"} else action


def _release_action(payload: Part) -> str:
    action = payload.word("action")
    # `published` reports the same.
    return "" if action in {"created", "released", "prereleased"} else action


def _release_tag(payload: Part) -> dict[str, str]:
    """Return the tag, if the release has another name."""
    tag = payload.line("release.tag_name")
    return {"tag": "" if payload.line("release.name", "") in {"", tag} else tag}


def _gollum(payload: Part) -> Post | None:
    pages = [part.fill("{action} [{title}]({html_url})") for part in payload.parts("pages")[:20]]
    if not pages:
        return None
    topic = f"{payload.fill(_HOST.repository)} / wiki"
    return Post(topic, f"{payload.fill(_HOST.who)} {listed(pages)}.", "gollum")


def _run(event: str, noun: str) -> Writer:
    """Return a writer for the end of a check or workflow."""
    branch = f"{{{event}.head_branch|{event}.check_suite.head_branch|}}"
    name = f"[{{{event}.name|{event}.app.name|{noun}}}]({{{event}.html_url}})"
    return _HOST.writer(
        event,
        {"": "", "*": f"{noun} {name} {{action}}<< on `{branch}`>> (`{{{event}.head_sha|:11}}`)"},
        action=lambda payload: (
            payload.word(f"{event}.conclusion", "")
            if payload.word("action") == "completed" and payload.part(event)
            else ""
        ),
        verbs=_ENDED,
        topic=f"{{repository}}<< / {branch}>>",
    )


def _status(payload: Part) -> Post | None:
    state = payload.word("state")
    if state == "pending":
        return None
    topic = payload.fill(f"{_HOST.repository}<< / {{branches.0.name|}}>>")
    text = payload.fill(
        "[{context}]({target_url}) {ended} for commit [{sha:11}]({commit.html_url})",
        {"ended": _ENDED.get(state, state)},
    )
    description = payload.line("description", "")
    return Post(topic, f"{text}: {description}" if description else f"{text}.", "status")


def _page_build(payload: Part) -> Post | None:
    status = payload.word("build.status")
    if status == "building":
        return None
    repository = payload.fill(_HOST.repository)
    site = f"The GitHub Pages site of {repository}"
    if status == "built":
        return Post(repository, f"{site} was built.", "page_build")
    error = payload.text("build.error.message", "")
    return Post(repository, with_quote(f"{site} failed to build", error), "page_build")


def _team(event: str) -> Writer:
    team = "the team [{team.name}]({team.html_url})"
    sentences = {
        "added_to_repository": f"{{who}} added {team} to {{repository}}",
        "removed_from_repository": f"{{who}} removed {team} from {{repository}}",
        "*": f"{{who}} {{action}} {team}",
    }
    return _HOST.writer(event, sentences, action=action_or("added_to_repository"))


def _alert(event: str, noun: str) -> Writer:
    """Return a writer for an alert of a scanner."""
    title = "alert.security_advisory.summary|alert.rule.description|alert.secret_type_display_name"
    return _HOST.writer(
        event,
        f"{noun} [#{{alert.number}} {{{title}|{noun}}}]({{alert.html_url}})"
        "<< in `{alert.dependency.package.name|}`>>: {action}"
        "<< (severity: {alert.security_advisory.severity|alert.rule.severity|})>>",
        topic="{repository} / security",
    )


_COMMIT: Final = (
    "commit [{comment.commit_id|:11}]({repository.html_url}/commit/{comment.commit_id|})"
)
_MEMBER: Final = "[{member.login}]({member.html_url})"
_REPOSITORY: Final = "the repository [{repository.full_name}]({repository.html_url})"
WRITERS: Final[Mapping[str, Writer]] = {
    "check_run": _run("check_run", "Check"),
    "check_suite": _run("check_suite", "Checks"),
    "code_scanning_alert": _alert("code_scanning_alert", "Code scanning alert"),
    "commit_comment": _comments("commit_comment", None, _COMMIT),
    "create": branch_event(_HOST, "create", "tree/{name}"),
    "delete": branch_event(_HOST, "delete"),
    "dependabot_alert": _alert("dependabot_alert", "Dependabot alert"),
    "deployment": _HOST.writer(
        "deployment",
        "{who} started a deployment of `{deployment.ref}`<< to {deployment.environment|}>>",
    ),
    "deployment_status": _HOST.writer(
        "deployment_status",
        {
            "*": "Deployment of `{deployment.ref}`<< to {deployment.environment|}>>:"
            " [{action}]({deployment_status.log_url|deployment_status.target_url})"
        },
        action=lambda payload: payload.line("deployment_status.state"),
    ),
    "discussion": _HOST.writer(
        "discussion",
        {
            "labeled": "",
            "unlabeled": "",
            "created": "{who} started {item}<< in {discussion.category.name|}>>",
            "answered": "{who} [answered]({answer.html_url}) {item}",
            "category_changed": "{who} moved {item} to {discussion.category.name|another category}",
            "unanswered": "{who} unmarked the answer to {item}",
            "*": "{who} {action} {item}",
        },
        item=_DISCUSSION,
        body={"created": "discussion.body", "answered": "answer.body"},
    ),
    "discussion_comment": _comments("discussion_comment", _DISCUSSION),
    "fork": _HOST.writer("fork", "{who} forked [{forkee.full_name}]({forkee.html_url})"),
    "gollum": _gollum,
    "issue_comment": _comments(
        "issue_comment",
        lambda payload: Item("issue", "PR" if payload.find("issue.pull_request") else "issue"),
    ),
    "issues": _HOST.writer("issues", _CHANGED, item=Item("issue", "issue"), body=BODY),
    "member": _HOST.writer(
        "member",
        {
            "added": f"{{who}} added {_MEMBER} as a collaborator",
            "removed": f"{{who}} removed {_MEMBER} as a collaborator",
            "*": f"{{who}} changed the permissions of {_MEMBER}",
        },
        action=action_or("added"),
    ),
    "milestone": _HOST.writer(
        "milestone", "{who} {action} milestone [{milestone.title}]({milestone.html_url})"
    ),
    "package": _HOST.writer(
        "package",
        "{who} {action} package"
        " [{package.name}<< {package.package_version.version|}>>]({package.html_url})",
        values=lambda payload: {
            "package": payload.find("package") or payload.part("registry_package")
        },
    ),
    "page_build": _page_build,
    "public": _HOST.writer("public", f"{{who}} made {_REPOSITORY} public"),
    "pull_request": _HOST.writer(
        "pull_request",
        {
            **_CHANGED,
            **REQUESTED,
            "drafted": REQUESTED["opened"].replace("{item}", "a draft of {item}"),
            "ready_for_review": "{who} marked {item} as ready for review",
            "converted_to_draft": "{who} converted {item} to a draft",
        },
        action=_request_action,
        item=_PR,
        body={**BODY, "drafted": "thing.body"},
    ),
    "pull_request_review": _HOST.writer(
        "pull_request_review",
        {
            "approved": "{who} [approved]({review.html_url}) {item}",
            "changes_requested": "{who} [requested changes to]({review.html_url}) {item}",
            "submitted": "{who} [reviewed]({review.html_url}) {item}",
            "edited": "{who} edited a [review]({review.html_url}) of {item}",
            "dismissed": "{who} dismissed a [review]({review.html_url}) of {item}",
        },
        action=_review_action,
        item=_PR,
        body=dict.fromkeys(("approved", "changes_requested", "submitted", "edited"), "review.body"),
    ),
    "pull_request_review_comment": _comments(
        "pull_request_review_comment", _PR, "{item}<< (`{comment.path|}`)>>"
    ),
    "pull_request_review_thread": _HOST.writer(
        "pull_request_review_thread", "{who} {action} a thread of {item}", item=_PR
    ),
    "push": _push,
    "release": _HOST.writer(
        "release",
        {
            "": "",
            "*": "{who} {action} release [{release.name|release.tag_name|}]({release.html_url})"
            "<< for tag `{tag}`>>",
        },
        action=_release_action,
        values=_release_tag,
        body={"published": "release.body"},
    ),
    "repository": _HOST.writer(
        "repository",
        {
            "publicized": f"{{who}} made {_REPOSITORY} public",
            "privatized": f"{{who}} made {_REPOSITORY} private",
            "*": f"{{who}} {{action}} {_REPOSITORY}",
        },
    ),
    "secret_scanning_alert": _alert("secret_scanning_alert", "Secret scanning alert"),
    "star": _HOST.writer(
        "star",
        {
            "created": "{who} starred [{repository}]({repository.html_url})",
            "*": "{who} unstarred [{repository}]({repository.html_url})",
        },
        action=action_or("created"),
    ),
    "status": _status,
    "team": _team("team"),
    "team_add": _team("team_add"),
    "watch": lambda _: None,  # It means a star, which has its own event.
    "workflow_run": _run("workflow_run", "Workflow"),
}
_NO_MESSAGE: Final = frozenset({"ping", "workflow_job", "meta", "label"})
"""Events without a message."""
GITHUB: Final = Integration(
    "github",
    "GitHub",
    dispatched(("x-github-event",), WRITERS, quiet=_NO_MESSAGE),
    tuple(WRITERS),
    hmac_hex("x-hub-signature-256", "sha256="),
    has_branches=True,
)
