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
    """Too many people ask for responses that take long to make. `wait` is in seconds."""

    def __init__(self, wait: int) -> None:
        self.wait = wait
        super().__init__("Too many people are connecting right now. Try again in a moment.")


class TooMuchUnread(Unavailable):
    """Clients have too many responses that they haven't read."""

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
    """Another site's page used a browser's session."""


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


def error_response(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return the HTTP status, the body (without `result`), and the extra headers for an error.

    Errors other than refusals are bugs: their text isn't shown.
    """
    status, code = 400, "BAD_REQUEST"
    extra: dict[str, Any] = {}
    headers: dict[str, str] = {}
    match error:
        case MissingParameter(name=name):
            code, extra = "REQUEST_VARIABLE_MISSING", {"var_name": name}
        case BadParameter(name=name):
            code, extra = "REQUEST_VARIABLE_INVALID", {"var_name": name}
        case ConfusingParameters(first=first, second=second):
            code, extra = "REQUEST_CONFUSING_VAR", {"var_name1": first, "var_name2": second}
        case NotFound():
            status = 404
        case MethodNotAllowed(allowed=allowed):
            status, extra = 405, {"allowed_methods": allowed}
            headers["Allow"] = ", ".join(allowed)
        case BodyTooLarge():
            status = 413
        case HeadTooLarge():
            status = 431
        case CsrfFailed():
            status, code = 403, "CSRF_FAILED"
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
        case errors.NoSuchQueue(queue_id=queue_id):
            code, extra = "BAD_EVENT_QUEUE_ID", {"queue_id": queue_id}
        case errors.NoSuchItem():
            status = 404
        case errors.NoSuchView():
            status, code = 404, "NOT_FOUND"
        case errors.NoSuchPushToken():
            code = "INVALID_PUSH_DEVICE_TOKEN"
        case errors.ZoomNotConnected():
            code = "INVALID_ZOOM_TOKEN"
        case errors.PushNotOffered():
            code = "PUSH_NOTIFICATIONS_DISALLOWED"
        case errors.KeyInsufficient():
            status, code = 403, "ACCESS_KEY_INSUFFICIENT"
        case errors.NotPermitted():
            code = "UNAUTHORIZED_PRINCIPAL"
        case errors.NotAuthenticated():
            status, code = 401, "UNAUTHORIZED"
            headers["WWW-Authenticate"] = CHALLENGE
        case errors.WrongApiKey():
            status, code = 401, "INVALID_API_KEY"
            headers["WWW-Authenticate"] = CHALLENGE
        case errors.WrongPassword():
            status, code = 401, "AUTHENTICATION_FAILED"
        case errors.SecondFactorRequired():
            status, code = 403, "SECOND_FACTOR_REQUIRED"
        case errors.WrongCode():
            status, code = 401, "AUTHENTICATION_FAILED"
        case errors.PasswordSignInDisabled():
            status, code = 401, "PASSWORD_AUTH_DISABLED"
        case errors.AccountDeactivated():
            status, code = 401, "USER_DEACTIVATED"
        case errors.OrganizationDeactivated():
            status, code = 401, "REALM_DEACTIVATED"
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
        case errors.MayNotOpen():
            status = 403
        case errors.InvitationFailed():
            code = "INVITATION_FAILED"
            extra = {
                "errors": error.errors,
                "sent_invitations": error.sent,
                "daily_limit_reached": error.daily_limit_reached,
                "license_limit_reached": False,
            }
        case errors.StaleExpectation():
            code = "EXPECTATION_MISMATCH"
        case errors.ReactionExists():
            code = "REACTION_ALREADY_EXISTS"
        case errors.NoSuchReaction():
            code = "REACTION_DOES_NOT_EXIST"
        case errors.BadImage():
            code = "BAD_IMAGE"
        case errors.UnsupportedEvent(integration=integration, event=event):
            # A success status: services turn off webhooks that fail too often.
            status, code = 200, "UNSUPPORTED_WEBHOOK_EVENT_TYPE"
            extra = {"webhook_name": integration, "event_type": event}
        case errors.NotJson():
            code = "INVALID_JSON"
        case errors.StrangePayload():
            code = "ANOMALOUS_WEBHOOK_PAYLOAD"
        case Refused():
            pass
        case errors.OutcomeUnknown():
            status, code = 503, "SERVER_NOT_READY"  # And no invitation to try again.
        case DatabaseUnavailable():  # The reason is the operator's.
            headers["Retry-After"] = "1"
            text = "The database isn't responding. Try again."
            return 503, {"msg": text, "code": "SERVER_NOT_READY"}, headers
        case errors.FilesUnavailable():  # So it is here.
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
