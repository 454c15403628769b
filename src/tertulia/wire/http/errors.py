"""Errors as HTTP responses: their status, code, and extra fields."""

import math
from typing import Any, Final

from tertulia.model import errors
from tertulia.model.errors import Refused, TooOften, Unavailable
from tertulia.store.database import DatabaseUnavailable


class MissingParameter(Refused):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The parameter '{name}' is missing.")


class BadParameter(Refused):
    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"Bad value for '{name}': {reason}")


class ConfusingParameters(Refused):
    """The same parameter was sent under two names."""

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        super().__init__(f"'{first}' and '{second}' are the same parameter. Send only one of them.")


class NotFound(Refused):
    def __init__(self) -> None:
        super().__init__("This endpoint doesn't exist.")


class MethodNotAllowed(Refused):
    def __init__(self, allowed: list[str]) -> None:
        self.allowed = sorted(allowed)
        super().__init__("This endpoint doesn't support this method.")


class BodyTooLarge(Refused):
    def __init__(self, limit: int) -> None:
        kib = limit // 1024
        size = f"{kib // 1024} MiB" if kib >= 1024 else f"{kib} KiB"
        super().__init__(f"The request is larger than the {size} limit.")


class Overloaded(Unavailable):
    def __init__(self) -> None:
        super().__init__("The server is too busy. Try again in a moment.")


class Crowded(Unavailable):
    """Too many responses that take long to make are requested. `wait` is in seconds."""

    def __init__(self, wait: int) -> None:
        self.wait = wait
        super().__init__("Too many people are connecting right now. Try again in a moment.")


class TooMuchUnread(Unavailable):
    """Clients have too many unread responses."""

    def __init__(self) -> None:
        super().__init__(
            "Too many responses haven't been read yet. Read the responses to earlier"
            " requests, then try again."
        )


class TooManyConnections(Unavailable):
    def __init__(self) -> None:
        super().__init__("Too many connections from your IP address are open. Close some of them.")


class HeadTooLarge(Refused):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The request's headers are larger than the {limit // 1024} KiB limit.")


class BadHttp(Refused):
    """The request isn't valid HTTP, or is ambiguous."""

    def __init__(self, sentence: str = "This isn't a valid HTTP request.") -> None:
        super().__init__(sentence)


CHALLENGE: Final = 'Basic realm="tertulia"'
"""Asks for an email address and an API key."""


class TooManyAtOnce(Refused):
    """Too many requests are pipelined on one connection."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A connection can have at most {limit} requests in progress.")


class BadBody(Refused):
    """The body doesn't match its content type."""


class BadAuthorization(Refused):
    """The Authorization header doesn't use the Basic scheme."""


class CsrfFailed(Refused):
    """A page of another site used a browser's session."""


class ConfirmationRequired(Refused):
    """The sign-in is too old for this action. It can be confirmed with any of `proofs`: `password`,
    `passkey`, `code`."""

    def __init__(self, proofs: list[str]) -> None:
        self.proofs = proofs
        what = "password" if "password" in proofs else "second factor"
        super().__init__(f"Confirm your {what}. You signed in a while ago.")


class TooManyTries(TooOften):
    def __init__(self, wait: float) -> None:
        seconds = max(1, math.ceil(wait))
        minutes = math.ceil(seconds / 60)
        when = "a minute" if minutes == 1 else f"{minutes} minutes"
        super().__init__(seconds, f"Too many attempts. Wait {when}, then try again.")


class TooManyRequests(TooOften):
    def __init__(self, wait: float) -> None:
        seconds = math.ceil(wait * 1000) / 1000
        super().__init__(seconds, f"Too many requests. Wait {seconds:g} s, then try again.")


class TusRefused(Refused):
    """A request of the tus protocol failed with a status of that protocol."""

    def __init__(self, status: int, sentence: str, code: str = "BAD_REQUEST") -> None:
        self.status = status
        self.code = code
        super().__init__(sentence)


_PLAIN: Final[dict[type[Exception], tuple[int, str]]] = {
    NotFound: (404, "BAD_REQUEST"),
    BodyTooLarge: (413, "BAD_REQUEST"),
    HeadTooLarge: (431, "BAD_REQUEST"),
    CsrfFailed: (403, "CSRF_FAILED"),
    errors.NoSuchItem: (404, "BAD_REQUEST"),
    errors.NoSuchView: (404, "NOT_FOUND"),
    errors.NoSuchPushToken: (400, "INVALID_PUSH_DEVICE_TOKEN"),
    errors.ZoomNotConnected: (400, "INVALID_ZOOM_TOKEN"),
    errors.PushNotOffered: (400, "PUSH_NOTIFICATIONS_DISALLOWED"),
    errors.PushBouncerMissing: (400, "PUSH_SERVICE_NOT_CONFIGURED"),
    errors.NoActivePhone: (400, "NO_ACTIVE_PUSH_DEVICE"),
    errors.PushBouncerUnreachable: (502, "FAILED_TO_CONNECT_BOUNCER"),
    errors.PushBouncerDown: (502, "INTERNAL_SERVER_ERROR_ON_BOUNCER"),
    errors.PushBouncerRejects: (403, "ADMIN_ACTION_REQUIRED"),
    errors.KeyInsufficient: (403, "ACCESS_KEY_INSUFFICIENT"),
    errors.OnlyForBots: (400, "PERMISSION_DENIED"),
    errors.NotPermitted: (400, "UNAUTHORIZED_PRINCIPAL"),
    errors.WrongPassword: (401, "AUTHENTICATION_FAILED"),
    errors.SecondFactorRequired: (403, "SECOND_FACTOR_REQUIRED"),
    errors.WrongCode: (401, "AUTHENTICATION_FAILED"),
    errors.PasswordSignInDisabled: (401, "PASSWORD_AUTH_DISABLED"),
    errors.AccountDeactivated: (401, "USER_DEACTIVATED"),
    errors.OrganizationDeactivated: (401, "REALM_DEACTIVATED"),
    errors.MayNotOpen: (403, "BAD_REQUEST"),
    errors.StaleExpectation: (400, "EXPECTATION_MISMATCH"),
    errors.ReactionExists: (400, "REACTION_ALREADY_EXISTS"),
    errors.NoSuchReaction: (400, "REACTION_DOES_NOT_EXIST"),
    errors.BadImage: (400, "BAD_IMAGE"),
    errors.NotJson: (400, "INVALID_JSON"),
    errors.StrangePayload: (400, "ANOMALOUS_WEBHOOK_PAYLOAD"),
}
"""Status and code of errors without other fields."""


def error_response(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return the HTTP status, the body (without `result`), and the extra headers for an error.

    Errors other than refusals are bugs, so their text isn't shown.
    """
    found = (_PLAIN[kind] for kind in type(error).__mro__ if kind in _PLAIN)
    status, code = next(found, (400, "BAD_REQUEST"))
    extra: dict[str, Any] = {}
    headers: dict[str, str] = {}
    match error:
        case MissingParameter(name=name):
            code, extra = "REQUEST_VARIABLE_MISSING", {"var_name": name}
        case BadParameter(name=name):
            code, extra = "REQUEST_VARIABLE_INVALID", {"var_name": name}
        case ConfusingParameters(first=first, second=second):
            code, extra = "REQUEST_CONFUSING_VAR", {"var_name1": first, "var_name2": second}
        case MethodNotAllowed(allowed=allowed):
            status, extra = 405, {"allowed_methods": allowed}
            headers["Allow"] = ", ".join(allowed)
        case ConfirmationRequired(proofs=proofs):
            status, code, extra = 403, "PASSWORD_CONFIRMATION_REQUIRED", {"proofs": proofs}
        case TooOften(wait=wait):
            status, code, extra = 429, "RATE_LIMIT_HIT", {"retry-after": wait}
            # HTTP allows whole seconds only.
            headers["Retry-After"] = str(math.ceil(wait))
        case TusRefused(status=status, code=code):
            pass
        case errors.NoSuchChannel(channel_id=channel_id, name=name):
            code = "STREAM_DOES_NOT_EXIST"
            extra = {"stream_id": channel_id} if channel_id is not None else {"stream": name}
        case errors.ChannelExists(channel_name=channel_name):
            status, code = 409, "CHANNEL_ALREADY_EXISTS"
            extra = {"channel_name": channel_name}
        case errors.NoSuchQueue(queue_id=queue_id):
            code, extra = "BAD_EVENT_QUEUE_ID", {"queue_id": queue_id}
        case errors.NotAuthenticated():
            status, code = 401, "UNAUTHORIZED"
            headers["WWW-Authenticate"] = CHALLENGE
        case errors.WrongApiKey():
            status, code = 401, "INVALID_API_KEY"
            headers["WWW-Authenticate"] = CHALLENGE
        case errors.LastOfKind(is_last_owner=is_last_owner, entity=entity):
            code = "CANNOT_DEACTIVATE_LAST_USER"
            extra = {"is_last_owner": is_last_owner, "entity": entity}
        case errors.BadNarrow(reason=reason):
            code, extra = "BAD_NARROW", {"desc": reason}
        case errors.WildcardNotAllowed(of_topic=of_topic):
            code = f"{'TOPIC' if of_topic else 'STREAM'}_WILDCARD_MENTION_NOT_ALLOWED"
        case errors.SystemGroupRequired(setting=setting):
            code, extra = "SYSTEM_GROUP_REQUIRED", {"setting_name": setting}
        case errors.TooOldToMove(first_allowed=first, total=total, allowed=allowed):
            code = "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED"
            extra = {
                "first_message_id_allowed_to_move": first,
                "total_messages_in_topic": total,
                "total_messages_allowed_to_move": allowed,
            }
        case errors.GroupInUse(uses=uses):
            code, extra = (
                "CANNOT_DEACTIVATE_GROUP_IN_USE",
                {"objections": [_objection(use) for use in uses]},
            )
        case errors.QuotaReached(quota=quota, limit=limit):
            code, extra = "QUOTA_REACHED", {"quota": quota, "limit": limit}
        case errors.UploadQuotaReached(of_person=of_person):
            code = "USER_UPLOAD_QUOTA" if of_person else "REALM_UPLOAD_QUOTA"
        case errors.InvitationFailed():
            code = "INVITATION_FAILED"
            extra = {
                "errors": error.errors,
                "sent_invitations": error.sent,
                "daily_limit_reached": error.daily_limit_reached,
                "license_limit_reached": False,
            }
        case errors.UnsupportedEvent(integration=integration, event=event):
            # A success status, because services turn off webhooks that fail too often.
            status, code = 200, "UNSUPPORTED_WEBHOOK_EVENT_TYPE"
            extra = {"webhook_name": integration, "event_type": event}
        case Refused():
            pass
        case errors.OutcomeUnknown():
            status, code = 503, "SERVER_NOT_READY"  # Without Retry-After.
        case DatabaseUnavailable():  # The reason is only for the operator.
            headers["Retry-After"] = "1"
            text = "The database isn't responding. Try again."
            return 503, {"msg": text, "code": "SERVER_NOT_READY"}, headers
        case errors.FilesUnavailable():  # The same applies here.
            headers["Retry-After"] = "1"
            text = "The server can't reach its file storage. Try again."
            return 503, {"msg": text, "code": "SERVER_NOT_READY"}, headers
        case errors.Unavailable():
            status, code = 503, "SERVER_NOT_READY"
            headers["Retry-After"] = str(error.wait if isinstance(error, Crowded) else 1)
        case _:
            status, code = 500, "INTERNAL_SERVER_ERROR"
            return status, {"msg": "Something went wrong on the server.", "code": code}, headers
    return status, {"msg": str(error), "code": code, **extra}, headers


def _objection(use: errors.GroupUse) -> dict[str, Any]:
    if use.kind == "subgroup":
        return {"type": use.kind, "supergroup_ids": list(use.ids)}
    names = {"channel": "channel_id", "user_group": "group_id"}
    where = {names[use.kind]: use.ids[0]} if use.ids else {}
    return {"type": use.kind, **where, "settings": list(use.settings)}
