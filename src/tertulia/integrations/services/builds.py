"""Build and deployment services: Jenkins, CircleCI, Travis CI, Netlify, Heroku, and Ansible
Tower."""

from typing import Final

from tertulia.integrations.forge import branch_topic, on_branch
from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, paragraphs, short, title_case
from tertulia.integrations.signatures import hmac_base64, versions, web_token
from tertulia.model.numbers import counted

_ENDS: Final = {
    "success": "succeeded",
    "passed": "passed",
    "failure": "failed",
    "failed": "failed",
    "error": "failed with an error",
    "unstable": "is unstable",
    "aborted": "was aborted",
    "canceled": "was canceled",
    "cancelled": "was canceled",
    "not_built": "wasn't built",
    "not_run": "didn't run",
    "unauthorized": "was not authorized",
}


def _ended(status: str) -> str:
    return _ENDS.get(status.lower(), f"ended: {title_case(status).lower()}")


def _jenkins(request: WebhookRequest) -> Translated:
    """Translate the format of the notification plugin."""
    payload = request.payload
    name, build = payload.line("name"), payload.part("build")
    phase = build.word("phase", "FINALIZED").lower()
    if phase in {"queued", "completed"}:
        return None  # `started` and `finalized` report the same.
    number = build.line("number")
    named = link(f"{payload.line('display_name', name)} #{number}", build.url("full_url"))
    branch = build.line("scm.branch", "")
    on = on_branch(branch.removeprefix("origin/"))
    if phase == "started":
        return Post(name, f"Build {named} started{on}.", phase)
    status = build.line("status", "")
    return Post(name, f"Build {named} {_ended(status)}{on}.", "finalized")


def _circleci(request: WebhookRequest) -> Translated:
    payload = request.payload
    event = payload.word("type")
    if event == "ping":
        return None
    if event not in {"workflow-completed", "job-completed"}:
        raise Unsupported(event)
    kind = event.partition("-")[0]
    thing, vcs = payload.part(kind), payload.find("pipeline.vcs") or Part({})
    project = payload.line("project.name")
    branch = vcs.line("branch", vcs.line("tag", ""))
    named = link(thing.line("name"), thing.url("url") or payload.url("workflow.url"))
    pipeline = payload.line("pipeline.number", "")
    about = f" of pipeline #{pipeline}" if pipeline else ""
    text = f"{kind.capitalize()} {named}{about} {_ended(thing.line('status'))}{on_branch(branch)}"
    subject = vcs.line("commit.subject", "")
    author = vcs.line("commit.author.name", "")
    revision = vcs.line("revision", "")[:11]
    commit = f"* {short(subject, 100)} ({code(revision)}, {author})" if subject else ""
    topic = branch_topic(project, branch)
    return Post(topic, paragraphs(f"{text}.", f"\n{commit}" if commit else ""), event)


def _travis(request: WebhookRequest) -> Translated:
    payload = request.payload
    name = payload.line("repository.name")
    message = payload.line("status_message", payload.line("result_message", ""))
    number = payload.line("number", "")
    build = link(f"Build #{number}" if number else "Build", payload.url("build_url"))
    changes = link("changes", payload.url("compare_url"))
    who = payload.line("author_name", "someone")
    branch = payload.line("branch", "")
    on = on_branch(branch)
    state = payload.word("state", "")
    verb = _ended(state) if state in _ENDS else message.lower()
    if message and message.lower() in {"fixed", "broken", "still failing", "passed"}:
        verb = f"is {message.lower()}" if message.lower() != "passed" else "passed"
    topic = branch_topic(name, branch)
    event = payload.word("type", "push")
    return Post(topic, f"{build} {verb}{on} (by {who}, {changes}).", event)


_NETLIFY: Final = {
    "deploy_building": "is being built",
    "deploy_created": "was deployed",
    "deploy_failed": "failed to deploy",
    "deploy_locked": "was locked",
    "deploy_unlocked": "was unlocked",
    "submission_created": "received a form submission",
}


def _netlify(request: WebhookRequest) -> Translated:
    payload = request.payload
    state = payload.word("state", "")
    guessed = {"building": "deploy_building", "ready": "deploy_created", "error": "deploy_failed"}
    event = request.header("x-netlify-event") or guessed.get(state, "")
    if event not in _NETLIFY:
        raise Unsupported(event or state)
    if event == "submission_created":
        name = payload.line("form_name", "form")
        fields = payload.fields("human_fields").items()
        lines = [f"* {field}: {value.line('', '')}" for field, value in fields][:30]
        return Post(name, paragraphs(f"Form {name} was submitted:\n", *lines), event)
    name = payload.line("name")
    branch = payload.line("branch", "")
    url = payload.url("deploy_ssl_url") or payload.url("deploy_url") or payload.url("ssl_url")
    on = on_branch(branch, "from")
    log = link("log", payload.url("admin_url")) if payload.url("admin_url") else ""
    trouble = payload.line("error_message", "")
    text = f"{link(name, url)} {_NETLIFY[event]}{on}"
    text += f": {trouble}" if trouble else "."
    topic = branch_topic(name, branch)
    return Post(topic, paragraphs(text, log), event)


_HEROKU: Final = ("release", "build", "app", "addon", "dyno", "formation", "collaborator", "domain")
_HEROKU_VERBS: Final = {"create": "created", "update": "updated", "destroy": "removed"}


def _heroku(request: WebhookRequest) -> Translated:
    payload = request.payload
    if payload.find("resource") is None and payload.find("head_long") is not None:
        return _heroku_deploy(payload)
    event = payload.word("resource")
    if event not in _HEROKU:
        raise Unsupported(event)
    data, action = payload.part("data"), payload.word("action", "update")
    app = data.line("app.name", data.line("name", "Heroku"))
    who = payload.line("actor.email", data.line("user.email", "Someone"))
    status = data.line("status", "")
    verb = _HEROKU_VERBS.get(action, action)
    if event == "release":
        if status == "pending":
            return None
        what = f"Release v{data.line('version', '?')} of {app} {status or verb}"
        about = data.line("description", "")
        return Post(app, f"{what}: {about} (by {who})." if about else f"{what} (by {who}).", event)
    if event == "build":
        if status == "pending":
            return None
        out = link("output", data.url("output_stream_url"))
        return Post(app, f"Build of {app} {status or verb} (by {who}, {out}).", event)
    name = data.line("name", data.line("hostname", data.line("type", "")))
    about = f" {code(name)}" if name and name != app else ""
    return Post(app, f"{who} {verb} {event}{about} of {app}.", event)


def _heroku_deploy(payload: Part) -> Post:
    """Translate the older deploy hook."""
    app, commit = payload.line("app"), payload.line("head", "")
    named = link(app, payload.url("url"))
    who = payload.line("user", "Someone")
    text = paragraphs(f"{who} deployed {code(commit)} of {named}.", payload.text("git_log", ""))
    return Post(app, text, "release")


_TOWER: Final = ("successful", "failed", "running", "error", "canceled")


def _tower(request: WebhookRequest) -> Translated:
    payload = request.payload
    status = payload.word("status")
    if status not in _TOWER:
        raise Unsupported(status)
    kind, name = payload.line("friendly_name"), payload.line("name")
    number = payload.line("id", "")
    ends = {"running": "started", "successful": "succeeded"}
    named = link(f"#{number} {name}" if number else name, payload.url("url"))
    results = payload.fields("hosts")
    failed = [host for host, result in results.items() if result.flag("failed")]
    lines = [f"* {code(host)} failed" for host in failed[:20]]
    if results and not failed:
        lines.append(f"* {counted(len(results), 'host')} succeeded")
    head = f"{kind} {named} {ends.get(status, _ended(status))}"
    ending = ":\n" if lines else "."
    return Post(name, paragraphs(head + ending, *lines), status)


JENKINS: Final = Integration("jenkins", "Jenkins", _jenkins, ("started", "finalized"))
CIRCLECI: Final = Integration(
    "circleci",
    "CircleCI",
    _circleci,
    ("workflow-completed", "job-completed"),
    versions("circleci-signature"),
)
TRAVIS: Final = Integration("travis", "Travis CI", _travis, ("push", "pull_request", "cron", "api"))
NETLIFY: Final = Integration(
    "netlify", "Netlify", _netlify, tuple(_NETLIFY), web_token("x-webhook-signature")
)
HEROKU: Final = Integration(
    "heroku", "Heroku", _heroku, _HEROKU, hmac_base64("heroku-webhook-hmac-sha256")
)
ANSIBLE_TOWER: Final = Integration("ansibletower", "Ansible Tower", _tower, _TOWER)
