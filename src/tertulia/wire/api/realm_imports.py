"""Imports of uploaded exports of other chat servers, for owners."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Struct, convert

from tertulia.domain import permissions
from tertulia.domain.organization import imports
from tertulia.domain.organization.imports import NewImport
from tertulia.imports import canceling
from tertulia.imports.invitation_emails import invite, people_to_invite
from tertulia.imports.progress import CHECK_FACT, FACT, Progress
from tertulia.imports.wording import kind_in, reason_in
from tertulia.model import changes
from tertulia.model.errors import Refused
from tertulia.model.imports import DataImport, ImportKind, ImportRemark, ImportState, ImportSummary
from tertulia.service.node import Node
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.notes import QueuesForgotten
from tertulia.texts import language_for
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call, CreatedResponse

Kind = Literal["zulip", "slack", "mattermost", "rocketchat"]
State = Literal["checking", "checked", "importing", "finished", "failed", "canceled"]
ImportStep = Literal[
    "reading",
    "founding",
    "accounts",
    "groups",
    "channels",
    "rest",
    "messages",
    "end",
    "done",
]
MAX_TOKEN: Final = 500
MAX_TEAM: Final = 200
MAX_NAME: Final = 200


class ImportRemarkObject(Struct, kw_only=True):
    """Records of one kind that are skipped or changed for the same reason."""

    kind: Annotated[str, Doc("The plural noun, such as `messages`.")]
    label: Annotated[str, Doc("The noun in your language, in the form that fits `count`.")]
    reason: Annotated[str, Doc("A sentence in your language.")]
    count: int
    samples: Annotated[list[str], Doc("Up to 5 examples.")]


class ImportSummaryObject(Struct, kw_only=True):
    """The result of an import or of a check: what was, or would be, imported."""

    origin: Annotated[str, Doc("The other server, such as `Zulip 10.1`.")]
    imported: Annotated[dict[str, int], Doc("Counts by plural noun, such as `messages`.")]
    skipped: Annotated[list[ImportRemarkObject], Doc("Records that aren't imported.")]
    changed: Annotated[list[ImportRemarkObject], Doc("Records that are imported with changes.")]
    labels: Annotated[
        dict[str, str],
        Doc("The nouns of `imported` in your language, in the forms that fit the counts."),
    ]


class ImportProgressObject(Struct, kw_only=True):
    """The progress of a running import."""

    step: Annotated[
        ImportStep,
        Doc(
            "`reading` until the number of messages is known; `rest` are settings and files, and"
            " `messages` takes longest."
        ),
    ]
    messages: Annotated[int, Doc("The number of messages so far.")]
    expected: Annotated[int, Doc("The total number of messages, or an estimate.")]
    seconds_left: Annotated[int | None, Doc("An estimate; null if it isn't known yet.")]


class ImportObject(Struct, kw_only=True):
    """An import."""

    id: int
    kind: Kind
    state: Annotated[
        State,
        Doc(
            "`checking`: a dry run. `checked`: it can be started. A `failed` or `canceled` import"
            " can be continued."
        ),
    ]
    acting_user_id: Annotated[int, Doc("The user who uploaded the file or started the import.")]
    file_name: str
    file_size: Annotated[int, Doc("Bytes.")]
    new_accounts: Annotated[
        bool, Doc("Whether everyone gets a new account, even if their email address has one here.")
    ]
    has_file: Annotated[
        bool, Doc("Whether the file is kept, so that the import can be started or continued.")
    ]
    requested_at: Annotated[int, Doc("UNIX seconds.")]
    started_at: Annotated[int | None, Doc("UNIX seconds; null if it hasn't started.")]
    ended_at: Annotated[int | None, Doc("UNIX seconds; null if it hasn't ended.")]
    reason: Annotated[str, Doc("The reason of the failure; empty if it didn't fail.")]
    progress: Annotated[ImportProgressObject | None, Doc("Null unless it's running.")]
    plan: Annotated[ImportSummaryObject | None, Doc("The result of the dry run.")]
    report: Annotated[
        ImportSummaryObject | None, Doc("The result of the import, once it has finished.")
    ]


class RealmImportEvent(Event, kw_only=True, tag="realm_import"):
    """An import was requested, started, finished, canceled, or forgotten, or it failed. Get it with
    `GET /imports`. Only for owners."""

    import_id: int
    state: Annotated[State | None, Doc("Null if it was forgotten.")]


def _event(context: ProjectionContext, change: changes.DataImportSet) -> Event:
    data_import = change.data_import
    return RealmImportEvent(import_id=data_import.id, state=convert(data_import.state.value, State))


def _removed(context: ProjectionContext, change: changes.DataImportsRemoved) -> Event:
    return RealmImportEvent(import_id=change.import_ids[-1], state=None)


def _is_seen(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    return permissions.is_owner(context.state, viewer.user)


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.DataImportSet, _event, only_if=_is_seen),
    to_everybody(changes.DataImportsRemoved, _removed, only_if=_is_seen),
)


class UnfinishedImportObject(Struct, kw_only=True):
    """An unfinished import from the command line. Other imports can't start before it's
    finished."""

    origin: Annotated[str, Doc("The other server, such as `Zulip 10.1`.")]
    started_at: Annotated[int, Doc("UNIX seconds.")]


class ImportsResponse(ApiResponse, kw_only=True):
    """The imports, newest first."""

    imports: list[ImportObject]
    unfinished: Annotated[
        UnfinishedImportObject | None,
        Doc(
            "Present if an import from the command line isn't finished. To finish it, run the"
            " same command again; to cancel it, run `tertulia import cancel`."
        ),
    ]
    max_file_size_mib: Annotated[
        int, Doc("The largest file that can be uploaded; 0 if imports in the browser are off.")
    ]
    people_to_invite: Annotated[
        int, Doc("Imported people who haven't signed in yet, and can get emails.")
    ]


async def get_imports(call: Call) -> ImportsResponse:
    """Get the organization's imports with their progress and reports. Requires an owner."""
    permissions.require_owner(call.state, call.user)
    running = imports.running_import(call.state)
    progress = None if running is None else await _progress(call.node, running)
    every = sorted(call.state.data_imports, key=lambda data_import: -data_import.id)
    newest = await canceling.newest(call.node.log)
    language = language_for(call.state, call.user)
    unfinished = None
    if newest is not None and newest.step != "done" and not newest.request_id:
        started_at = int(newest.started_at)
        unfinished = UnfinishedImportObject(origin=newest.origin, started_at=started_at)
    return ImportsResponse(
        unfinished=unfinished,
        imports=[
            _object(data_import, progress if data_import is running else None, language)
            for data_import in every
        ],
        max_file_size_mib=call.node.config.max_import_size_mib,
        people_to_invite=len(people_to_invite(call.state)),
    )


def _object(
    data_import: DataImport, progress: ImportProgressObject | None, language: str
) -> ImportObject:
    return ImportObject(
        id=data_import.id,
        kind=convert(data_import.kind.value, Kind),
        state=convert(data_import.state.value, State),
        acting_user_id=data_import.started_by,
        file_name=data_import.name,
        file_size=data_import.size,
        new_accounts=data_import.new_accounts,
        has_file=bool(data_import.path),
        requested_at=data_import.requested_at,
        started_at=data_import.started_at or None,
        ended_at=data_import.ended_at or None,
        reason=data_import.reason,
        progress=progress,
        plan=_summary(data_import.plan, language),
        report=_summary(data_import.summary, language),
    )


def _summary(summary: ImportSummary | None, language: str) -> ImportSummaryObject | None:
    if summary is None:
        return None
    return ImportSummaryObject(
        origin=summary.origin,
        imported=summary.imported,
        skipped=[_remark(each, language) for each in summary.skipped],
        changed=[_remark(each, language) for each in summary.changed],
        labels={
            kind: kind_in(language, kind, count) for kind, count in sorted(summary.imported.items())
        },
    )


def _remark(remark: ImportRemark, language: str) -> ImportRemarkObject:
    return ImportRemarkObject(
        kind=remark.kind,
        label=kind_in(language, remark.kind, remark.count),
        reason=reason_in(language, remark.reason),
        count=remark.count,
        samples=list(remark.samples),
    )


async def _progress(node: Node, data_import: DataImport) -> ImportProgressObject:
    """Return the progress that the import's process has stored."""

    def read(connection: Connection) -> tuple[str | None, str | None]:
        return installation.value(connection, FACT), installation.value(connection, CHECK_FACT)

    stored, checking = await node.store.read(read)
    if data_import.state is ImportState.IMPORTING and stored is not None:
        progress = msgspec.json.decode(stored, type=Progress)
        if progress.request_id == data_import.id:
            left = progress.seconds_left(node.clock())
            return ImportProgressObject(
                step=progress.step,
                messages=progress.messages,
                expected=progress.expected,
                seconds_left=None if left is None else round(left),
            )
    if data_import.state is ImportState.CHECKING and checking is not None:
        import_id, messages, expected = msgspec.json.decode(checking, type=tuple[int, int, int])
        if import_id == data_import.id:
            return ImportProgressObject(
                step="messages", messages=messages, expected=expected, seconds_left=None
            )
    return ImportProgressObject(step="reading", messages=0, expected=0, seconds_left=None)


async def request_import(
    call: Call,
    upload: Annotated[
        str,
        Doc(
            "The key of a complete upload, which is the last part of its URL. It was uploaded to"
            " `/api/v1/tus` with `purpose import` in its metadata, by the same owner."
        ),
    ],
    kind: Annotated[Kind, Doc("The server that the export is from.")],
    team: Annotated[
        str,
        Doc(
            "For Mattermost: the name, as in URLs, of the only team to import; empty for all teams."
        ),
    ] = "",
    token: Annotated[
        str,
        Doc("For Slack: a token with the scope `files:read`, if the links of files need one."),
    ] = "",
    new_accounts: Annotated[
        bool,
        Doc(
            "Whether everyone gets a new account, even if their email address has one here. Use"
            " this for exports that you don't trust, so that they can't attribute messages to"
            " people here."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        Doc(
            "Whether to only check what would be imported, what wouldn't, and why. `POST"
            " /imports/{import_id}/start` then starts the import."
        ),
    ] = True,
) -> CreatedResponse:
    """Check or import an uploaded export. Requires an owner.

    One import runs at a time. Imported records get new IDs, and people are matched by email
    address. `realm_import` events report the result.
    """
    permissions.require_owner(call.state, call.user)
    if len(team) > MAX_TEAM or len(token) > MAX_TOKEN:
        raise Refused("The name of the team or the token is too long.")
    node = call.node
    partial = await node.partials.load(call.user.id, upload)
    if partial is None or not partial.is_import or partial.path is None:
        raise Refused("This upload doesn't exist or isn't complete. Upload the file again.")
    if await node.files.found(partial.path) is None:
        raise Refused("The uploaded file has been deleted. Upload it again.")
    new = NewImport(
        kind=ImportKind(kind),
        path=partial.path,
        name=partial.name[:MAX_NAME] or "export",
        size=partial.length,
        team=team,
        token_sealed=node.vault.sealed(token),
        is_dry_run=dry_run,
        new_accounts=new_accounts,
    )
    made = await call.submit(imports.request, new)
    return CreatedResponse(id=made.id)


async def start_import(
    call: Call,
    import_id: IntPath,
    new_accounts: Annotated[
        bool | None, Doc("As in `POST /imports`. Null, the default, keeps the current value.")
    ] = None,
) -> None:
    """Start an import that was checked, or continue one that failed or was canceled. Requires an
    owner."""
    await call.submit(imports.start, import_id, new_accounts)


async def delete_import(call: Call, import_id: IntPath) -> None:
    """Cancel a running import, or forget one that isn't running and delete its file. Requires an
    owner.

    Imported data stays.
    """
    node, state = call.node, call.state
    notes = [QueuesForgotten()] if imports.is_started(state, import_id) else []
    data_import = state.data_imports.get(import_id)
    await node.log.submit(call.user.id, imports.remove, import_id, notes=notes)
    used = {other.path for other in call.state.data_imports}
    if data_import is not None and data_import.path and data_import.path not in used:
        await node.files.delete(data_import.path)


class InvitedResponse(ApiResponse, kw_only=True):
    """The number of emails that will be sent."""

    invited: int


async def invite_imported(call: Call, import_id: IntPath) -> InvitedResponse:
    """Email everyone who was imported and hasn't signed in yet, with a link to set a password.
    Requires an owner. Call it again to remind them."""
    await call.submit(_require_finished, import_id)
    config = call.node.config
    per_day = config.invitations_per_day
    invited = await invite(call.node.log, config.mail_site, per_day, call.user.id)
    return InvitedResponse(invited=invited)


def _require_finished(context: CommandContext, import_id: int) -> Decision[None]:
    permissions.require_owner(context.state, context.actor)
    if imports.existing_import(context.state, import_id).state is not ImportState.FINISHED:
        raise Refused("This import isn't finished.")
    return Decision(None)
