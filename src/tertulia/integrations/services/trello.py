"""Trello."""

from typing import Final

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, code, link, said
from tertulia.integrations.signatures import hmac_base64

EVENTS: Final = (
    *("createCard", "updateCard", "deleteCard", "commentCard", "copyCard", "moveCardToBoard"),
    *("addMemberToCard", "removeMemberFromCard", "addAttachmentToCard", "addChecklistToCard"),
    *("createCheckItem", "updateCheckItemStateOnCard", "addLabelToCard", "removeLabelFromCard"),
    *("createList", "updateList", "addMemberToBoard", "removeMemberFromBoard", "updateBoard"),
)
_UNTOLD: Final = frozenset(
    {
        *("updateCheckItem", "updateChecklist", "deleteCheckItem", "createChecklist"),
        *("removeChecklistFromCard", "deleteAttachmentFromCard", "updateComment", "deleteComment"),
        *("createLabel", "updateLabel", "deleteLabel", "voteOnCard", "enablePlugin"),
        *("disablePlugin", "createBoard", "emailCard", "updateCustomFieldItem", "copyCommentCard"),
    }
)


def _card(data: Part) -> str:
    short = data.word("card.shortLink", "")
    url = f"https://trello.com/c/{short}" if short.isalnum() else ""
    return link(data.line("card.name", "a card"), url)


def _update_card(data: Part, card: str) -> str | None:
    old = data.part("old")
    changed = {name for name, _ in old.items()}
    if data.find("listAfter") is not None:
        before, after = data.line("listBefore.name"), data.line("listAfter.name")
        return f"moved {card} from {before} to {after}"
    if old.find("closed") is not None:
        return f"{'archived' if data.flag('card.closed') else 'reopened'} {card}"
    if old.find("name") is not None:
        return f"renamed {old.line('name')} to {card}"
    if "desc" in changed:
        verb = "changed" if data.line("card.desc", "") else "removed"
        return f"{verb} the description of {card}"
    if "due" in changed:
        due = data.line("card.due", "")
        return (
            f"set the due date of {card} to {due}" if due else f"removed the due date from {card}"
        )
    if "dueComplete" in changed:
        done = data.flag("card.dueComplete")
        return f"marked {card} as {'done' if done else 'not done'}"
    return None  # Its place in a list, its cover, …


def _what(kind: str, data: Part, action: Part) -> tuple[str | None, str]:
    """What a person did, and what they wrote."""
    card = _card(data)
    whom = action.line("member.fullName", "someone")
    board = data.line("board.name", "the board")
    match kind:
        case "createCard" | "copyCard":
            return f"created {card} in {data.line('list.name', 'a list')}", ""
        case "updateCard":
            return _update_card(data, card), ""
        case "deleteCard":
            return f"deleted card #{data.line('card.idShort', '?')}", ""
        case "moveCardToBoard":
            return f"moved {card} to this board", ""
        case "commentCard":
            return f"commented on {card}", data.text("text", "")
        case "addMemberToCard":
            return f"added {whom} to {card}", ""
        case "removeMemberFromCard":
            return f"removed {whom} from {card}", ""
        case "addAttachmentToCard":
            name = link(data.line("attachment.name", "a file"), data.url("attachment.url"))
            return f"attached {name} to {card}", ""
        case "addChecklistToCard":
            return f"added checklist {data.line('checklist.name')} to {card}", ""
        case "createCheckItem":
            return f"added {code(data.line('checkItem.name'))} to a checklist of {card}", ""
        case "updateCheckItemStateOnCard":
            done = data.word("checkItem.state", "") == "complete"
            verb = "checked" if done else "unchecked"
            return f"{verb} {code(data.line('checkItem.name'))} of {card}", ""
        case "addLabelToCard" | "removeLabelFromCard":
            label = data.line("label.name", "") or data.line("label.color", "") or "a label"
            if kind == "addLabelToCard":
                return f"added label {label} to {card}", ""
            return f"removed label {label} from {card}", ""
        case "createList":
            return f"created list {data.line('list.name')} on {board}", ""
        case "updateList":
            return _update_list(data), ""
        case "addMemberToBoard":
            return f"added {whom} to {board}", ""
        case "removeMemberFromBoard":
            return f"removed {whom} from {board}", ""
        case "updateBoard":
            before = data.line("old.name", "")
            return f"renamed the board {before} to {board}" if before else None, ""
    raise Unsupported(kind)


def _update_list(data: Part) -> str | None:
    if data.find("old.name") is not None:
        return f"renamed list {data.line('old.name')} to {data.line('list.name')}"
    if data.find("old.closed") is not None:
        verb = "archived" if data.flag("list.closed") else "reopened"
        return f"{verb} list {data.line('list.name')}"
    return None


def translate(request: WebhookRequest) -> Translated:
    """A request of Trello's."""
    action = request.payload.part("action")
    kind = action.word("type")
    if kind in _UNTOLD:
        return None
    data = action.part("data")
    what, body = _what(kind, data, action)
    if what is None:
        return None
    topic = data.line("board.name", request.payload.line("model.name", "Trello"))
    who = action.line("memberCreator.fullName", "Someone")
    return Post(topic, said(f"{who} {what}", body), kind)


TRELLO: Final = Integration(
    "trello",
    "Trello",
    translate,
    EVENTS,
    hmac_base64("x-trello-webhook", "sha1", with_url=True),
)
