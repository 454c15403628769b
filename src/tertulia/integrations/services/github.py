"""GitHub."""

from collections.abc import Mapping
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
    on_branch,
    pushed,
    said,
    topic_of,
)
from tertulia.integrations.incoming import (
    Integration,
    Post,
    Unsupported,
)
from tertulia.integrations.payloads import Part, code, link, listed, title_case
from tertulia.integrations.signatures import hmac_hex

_QUIET: Final = frozenset(
    {
        *("labeled", "unlabeled", "synchronize", "auto_merge_enabled", "auto_merge_disabled"),
        *("subscribed", "unsubscribed", "typed", "untyped"),
    }
)
"""Actions without a message."""


def _repository(payload: Part) -> str:
    return payload.line("repository.name", payload.line("organization.login", "GitHub"))


def _sender(payload: Part) -> str:
    return payload.line("sender.login", "Someone")


def _action(payload: Part) -> str:
    return title_case(payload.line("action", "changed")).lower()


def _push(payload: Part) -> Post | None:
    repository, ref = _repository(payload), payload.word("ref")
    name = branch_of(ref)
    who = payload.line("pusher.name", _sender(payload))
    if ref.startswith("refs/tags/"):
        verb = "removed" if payload.flag("deleted") else "pushed"
        tag = link(code(name), payload.url("compare") if verb == "pushed" else "")
        return Post(repository, f"{who} {verb} tag {tag}.", "push")
    topic = f"{repository} / {name}"
    if payload.flag("deleted"):
        return Post(topic, branch_deleted(who, "branch", name), "push", name)
    commits = commits_in(payload)
    text = pushed(who, name, payload.url("compare"), commits, forced=payload.flag("forced"))
    return Post(topic, text, "push", name)


def _issues(payload: Part) -> Post | None:
    issue = payload.part("issue")
    return _thing(payload, issue, "issue", "issues", issue_or_pr=f"issue {_titled(issue)}")


def _titled(thing: Part) -> str:
    text = f"#{thing.line('number')} {thing.line('title')}"
    return link(text, thing.url("html_url"))


def _topic(payload: Part, thing: Part, kind: str) -> str:
    number, title = f"#{thing.line('number')}", thing.line("title", "")
    return topic_of(_repository(payload), kind, number, title)


def _thing(payload: Part, thing: Part, kind: str, event: str, issue_or_pr: str) -> Post | None:
    action = payload.word("action")
    if action in _QUIET:
        return None
    topic, who = _topic(payload, thing, kind), _sender(payload)
    body = thing.text("body", "") if action in {"opened", "edited"} else ""
    match action:
        case "assigned" | "unassigned":
            whom = payload.line("assignee.login", "someone")
            what = f"{action} {whom} {'to' if action == 'assigned' else 'from'} {issue_or_pr}"
        case "milestoned" | "demilestoned":
            name = payload.line("milestone.title", thing.line("milestone.title", ""))
            if action == "milestoned":
                what = f"added milestone {name} to {issue_or_pr}"
            else:
                what = f"removed milestone {name} from {issue_or_pr}"
        case "transferred":
            new = payload.line("changes.new_repository.full_name", "another repository")
            what = f"transferred {issue_or_pr} to {new}"
        case _:
            what = f"{_action(payload)} {issue_or_pr}"
    return Post(topic, said(who, what, body), event)


def _issue_comment(payload: Part) -> Post | None:
    issue = payload.part("issue")
    kind = "PR" if issue.find("pull_request") else "issue"
    topic, on = _topic(payload, issue, kind), f"{kind} {_titled(issue)}"
    return commented(payload, _sender(payload), topic, on, "issue_comment")


def _pull_request(payload: Part) -> Post | None:
    request = payload.part("pull_request")
    topic, who, titled = _topic(payload, request, "PR"), _sender(payload), f"PR {_titled(request)}"
    base = request.line("base.ref", "")
    match payload.word("action"):
        case "opened":
            draft = "a draft of " if request.flag("draft") else ""
            head = request.line("head.ref", "")
            what = f"opened {draft}{titled} from {code(head)} to {code(base)}"
            return Post(topic, said(who, what, request.text("body", "")), "pull_request")
        case "closed":
            merged = request.flag("merged")
            what = (
                f"merged {titled} into {code(base)}"
                if merged
                else f"closed {titled} without merging"
            )
            return Post(topic, f"{who} {what}.", "pull_request")
        case "review_requested" | "review_request_removed" as action:
            whom = payload.line(
                "requested_reviewer.login", payload.line("requested_team.name", "someone")
            )
            if action == "review_requested":
                what = f"requested a review from {whom} on {titled}"
            else:
                what = f"removed the review request for {whom} on {titled}"
            return Post(topic, f"{who} {what}.", "pull_request")
        case "ready_for_review":
            return Post(topic, f"{who} marked {titled} as ready for review.", "pull_request")
        case "converted_to_draft":
            return Post(topic, f"{who} converted {titled} to a draft.", "pull_request")
    return _thing(payload, request, "PR", "pull_request", titled)


def _review(payload: Part) -> Post | None:
    request, review = payload.part("pull_request"), payload.part("review")
    state, url, who = review.word("state", ""), review.url("html_url"), _sender(payload)
    on, body = f"PR {_titled(request)}", review.text("body", "")
    topic = _topic(payload, request, "PR")
    match payload.word("action"):
        case "dismissed":
            return Post(topic, f"{who} dismissed a {link('review', url)} of {on}.", _REVIEW)
        case "edited":
            what = f"edited a {link('review', url)} of {on}"
            return Post(topic, said(who, what, body), _REVIEW)
        case "submitted":
            if state == "commented" and not body:
                return None  # Its comments are events of their own.
            verbs = {"approved": "approved", "changes_requested": "requested changes to"}
            what = f"{link(verbs.get(state, 'reviewed'), url)} {on}"
            return Post(topic, said(who, what, body), _REVIEW)
        case action:
            raise Unsupported(f"{_REVIEW}:{action}")


_REVIEW: Final = "pull_request_review"


def _review_comment(payload: Part) -> Post | None:
    request, comment = payload.part("pull_request"), payload.part("comment")
    on = f"PR {_titled(request)}"
    path = comment.line("path", "")
    if path:
        on += f" ({code(path)})"
    topic = _topic(payload, request, "PR")
    return commented(payload, _sender(payload), topic, on, "pull_request_review_comment")


def _review_thread(payload: Part) -> Post | None:
    request = payload.part("pull_request")
    text = f"{_sender(payload)} {_action(payload)} a thread of PR {_titled(request)}."
    return Post(_topic(payload, request, "PR"), text, "pull_request_review_thread")


def _made_or_deleted(event: str) -> Writer:
    def write(payload: Part) -> Post | None:
        kind, name, who = payload.line("ref_type"), payload.line("ref"), _sender(payload)
        topic = branch_topic(_repository(payload), name if kind == "branch" else "")
        if event == "create":
            url = payload.url("repository.html_url")
            tree = f"{url}/tree/{name}" if url else ""
            return Post(topic, branch_made(who, kind, name, tree), event)
        return Post(topic, branch_deleted(who, kind, name), event)

    return write


def _release(payload: Part) -> Post | None:
    release = payload.part("release")
    action = payload.word("action")
    if action in {"created", "released", "prereleased"}:
        return None  # `published` says the same.
    tag = release.line("tag_name")
    name = release.line("name", tag) or tag
    what = f"{_action(payload)} release {link(name, release.url('html_url'))}"
    if name != tag:
        what += f" for tag {code(tag)}"
    body = release.text("body", "") if action == "published" else ""
    return Post(_repository(payload), said(_sender(payload), what, body), "release")


def _fork(payload: Part) -> Post | None:
    fork = payload.part("forkee")
    where = link(fork.line("full_name"), fork.url("html_url"))
    return Post(_repository(payload), f"{_sender(payload)} forked {where}.", "fork")


def _star(payload: Part) -> Post | None:
    verb = "starred" if payload.word("action", "created") == "created" else "unstarred"
    where = link(_repository(payload), payload.url("repository.html_url"))
    return Post(_repository(payload), f"{_sender(payload)} {verb} {where}.", "star")


def _watch(payload: Part) -> Post | None:
    return None  # Has meant a star, of which there is an event of its own, for many years.


def _gollum(payload: Part) -> Post | None:
    pages = [
        f"{page.line('action')} {link(page.line('title'), page.url('html_url'))}"
        for page in payload.parts("pages")[:20]
    ]
    if not pages:
        return None
    return Post(f"{_repository(payload)} / wiki", f"{_sender(payload)} {listed(pages)}.", "gollum")


def _commit_comment(payload: Part) -> Post | None:
    comment = payload.part("comment")
    commit = comment.line("commit_id", "")
    url = payload.url("repository.html_url")
    on = f"commit {link(commit[:11], f'{url}/commit/{commit}' if url else '')}"
    return commented(payload, _sender(payload), _repository(payload), on, "commit_comment")


def _member(payload: Part) -> Post | None:
    member = payload.part("member")
    whom = link(member.line("login"), member.url("html_url"))
    repository, who = _repository(payload), _sender(payload)
    match payload.word("action", "added"):
        case "added":
            what = f"added {whom} as a collaborator"
        case "removed":
            what = f"removed {whom} as a collaborator"
        case _:
            what = f"changed the permissions of {whom}"
    return Post(repository, f"{who} {what}.", "member")


def _discussion(payload: Part) -> Post | None:
    discussion = payload.part("discussion")
    topic, who = _topic(payload, discussion, "discussion"), _sender(payload)
    titled = f"discussion {_titled(discussion)}"
    match payload.word("action"):
        case "created":
            where = discussion.line("category.name", "")
            what = f"started {titled}" + (f" in {where}" if where else "")
            return Post(topic, said(who, what, discussion.text("body", "")), "discussion")
        case "labeled" | "unlabeled":
            return None
        case "answered":
            what = f"{link('answered', payload.url('answer.html_url'))} {titled}"
            return Post(topic, said(who, what, payload.text("answer.body", "")), "discussion")
        case "category_changed":
            where = discussion.line("category.name", "another category")
            return Post(topic, f"{who} moved {titled} to {where}.", "discussion")
        case "unanswered":
            text = f"{who} unmarked the answer to {titled}."
            return Post(topic, text, "discussion")
        case _:
            return Post(topic, f"{who} {_action(payload)} {titled}.", "discussion")


def _discussion_comment(payload: Part) -> Post | None:
    discussion = payload.part("discussion")
    topic = _topic(payload, discussion, "discussion")
    on = f"discussion {_titled(discussion)}"
    return commented(payload, _sender(payload), topic, on, "discussion_comment")


_ENDED: Final[Mapping[str, str]] = {
    "success": "succeeded",
    "failure": "failed",
    "neutral": "ended",
    "cancelled": "was canceled",
    "skipped": "was skipped",
    "timed_out": "timed out",
    "action_required": "requires action",
    "stale": "is out of date",
    "startup_failure": "failed to start",
}


def _run(thing: str, event: str, noun: str) -> Writer:
    """The end of a check or workflow."""

    def write(payload: Part) -> Post | None:
        run = payload.part(thing)
        conclusion = run.word("conclusion", "")
        if payload.word("action") != "completed" or not conclusion:
            return None
        branch = run.line("head_branch", run.line("check_suite.head_branch", ""))
        name = link(run.line("name", run.line("app.name", noun)), run.url("html_url"))
        commit = code(run.line("head_sha", "")[:11])
        ended = _ENDED.get(conclusion, title_case(conclusion).lower())
        topic = branch_topic(_repository(payload), branch)
        return Post(topic, f"{noun} {name} {ended}{on_branch(branch)} ({commit}).", event)

    return write


def _status(payload: Part) -> Post | None:
    state = payload.word("state")
    if state == "pending":
        return None
    commit = payload.line("sha")[:11]
    context = link(payload.line("context"), payload.url("target_url"))
    ended = {"success": "succeeded", "failure": "failed", "error": "failed with an error"}
    name = link(commit, payload.url("commit.html_url"))
    branches = [one.line("name") for one in payload.parts("branches")]
    topic = branch_topic(_repository(payload), branches[0] if branches else "")
    text = f"{context} {ended.get(state, state)} for commit {name}"
    description = payload.line("description", "")
    return Post(topic, f"{text}: {description}" if description else f"{text}.", "status")


def _deployment(payload: Part) -> Post | None:
    where = payload.line("deployment.environment", "")
    text = f"{_sender(payload)} started a deployment of {code(payload.line('deployment.ref'))}"
    return Post(_repository(payload), f"{text} to {where}." if where else f"{text}.", "deployment")


def _deployment_status(payload: Part) -> Post | None:
    status = payload.part("deployment_status")
    state = title_case(status.line("state")).lower()
    url = status.url("log_url") or status.url("target_url")
    where = payload.line("deployment.environment", "")
    what = f"Deployment of {code(payload.line('deployment.ref'))}"
    text = f"{what} to {where}" if where else what
    return Post(_repository(payload), f"{text}: {link(state, url)}.", "deployment_status")


def _page_build(payload: Part) -> Post | None:
    status = payload.word("build.status")
    if status == "building":
        return None
    repository = _repository(payload)
    site = f"The GitHub Pages site of {repository}"
    if status == "built":
        return Post(repository, f"{site} was built.", "page_build")
    trouble = payload.text("build.error.message", "")
    return Post(repository, said(site, "failed to build", trouble), "page_build")


def _milestone(payload: Part) -> Post | None:
    milestone = payload.part("milestone")
    name = link(milestone.line("title"), milestone.url("html_url"))
    text = f"{_sender(payload)} {_action(payload)} milestone {name}."
    return Post(_repository(payload), text, "milestone")


def _repository_event(payload: Part) -> Post | None:
    name = link(payload.line("repository.full_name"), payload.url("repository.html_url"))
    whats = {
        "publicized": f"made the repository {name} public",
        "privatized": f"made the repository {name} private",
    }
    what = whats.get(payload.word("action"), f"{_action(payload)} the repository {name}")
    return Post(_repository(payload), f"{_sender(payload)} {what}.", "repository")


def _public(payload: Part) -> Post | None:
    name = link(payload.line("repository.full_name"), payload.url("repository.html_url"))
    text = f"{_sender(payload)} made the repository {name} public."
    return Post(_repository(payload), text, "public")


def _team(event: str) -> Writer:
    def write(payload: Part) -> Post | None:
        team = link(payload.line("team.name"), payload.url("team.html_url"))
        repository, who = _repository(payload), _sender(payload)
        match payload.word("action", "added_to_repository"):
            case "added_to_repository":
                what = f"added the team {team} to {repository}"
            case "removed_from_repository":
                what = f"removed the team {team} from {repository}"
            case _:
                what = f"{_action(payload)} the team {team}"
        return Post(repository, f"{who} {what}.", event)

    return write


def _package(payload: Part) -> Post | None:
    package = payload.find("package") or payload.part("registry_package")
    version = package.line("package_version.version", "")
    name = link(f"{package.line('name')} {version}".strip(), package.url("html_url"))
    text = f"{_sender(payload)} {_action(payload)} package {name}."
    return Post(_repository(payload), text, "package")


def _alert(event: str, noun: str) -> Writer:
    """An alert of a scanner."""

    def write(payload: Part) -> Post | None:
        alert = payload.part("alert")
        title = alert.line(
            "security_advisory.summary",
            alert.line("rule.description", alert.line("secret_type_display_name", noun)),
        )
        name = link(f"#{alert.line('number')} {title}", alert.url("html_url"))
        package = alert.line("dependency.package.name", "")
        about = f" in {code(package)}" if package else ""
        severity = alert.line("security_advisory.severity", alert.line("rule.severity", ""))
        how = f" (severity: {severity})" if severity else ""
        action = _action(payload)
        topic = f"{_repository(payload)} / security"
        return Post(topic, f"{noun} {name}{about}: {action}{how}.", event)

    return write


WRITERS: Final[Mapping[str, Writer]] = {
    "check_run": _run("check_run", "check_run", "Check"),
    "check_suite": _run("check_suite", "check_suite", "Checks"),
    "code_scanning_alert": _alert("code_scanning_alert", "Code scanning alert"),
    "commit_comment": _commit_comment,
    "create": _made_or_deleted("create"),
    "delete": _made_or_deleted("delete"),
    "dependabot_alert": _alert("dependabot_alert", "Dependabot alert"),
    "deployment": _deployment,
    "deployment_status": _deployment_status,
    "discussion": _discussion,
    "discussion_comment": _discussion_comment,
    "fork": _fork,
    "gollum": _gollum,
    "issue_comment": _issue_comment,
    "issues": _issues,
    "member": _member,
    "milestone": _milestone,
    "package": _package,
    "page_build": _page_build,
    "public": _public,
    "pull_request": _pull_request,
    "pull_request_review": _review,
    "pull_request_review_comment": _review_comment,
    "pull_request_review_thread": _review_thread,
    "push": _push,
    "release": _release,
    "repository": _repository_event,
    "secret_scanning_alert": _alert("secret_scanning_alert", "Secret scanning alert"),
    "star": _star,
    "status": _status,
    "team": _team("team"),
    "team_add": _team("team_add"),
    "watch": _watch,
    "workflow_run": _run("workflow_run", "workflow_run", "Workflow"),
}
_NO_MESSAGE: Final = frozenset({"ping", "workflow_job", "meta", "label"})
"""Events without a message."""


translate: Final = dispatched(("x-github-event",), WRITERS, quiet=_NO_MESSAGE)


GITHUB: Final = Integration(
    "github",
    "GitHub",
    translate,
    tuple(WRITERS),
    hmac_hex("x-hub-signature-256", "sha256="),
    has_branches=True,
)
