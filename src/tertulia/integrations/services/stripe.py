"""Stripe."""

from typing import Final

from tertulia.integrations.incoming import (
    Integration,
    Post,
    Translated,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Part, facts, link, paragraphs, title_case
from tertulia.integrations.signatures import timed

_WHOLE: Final = frozenset(
    {
        *("bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga"),
        *("pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"),
    }
)
"""Currencies without a minor unit."""
EVENTS: Final = (
    *("account.updated", "charge.succeeded", "charge.failed", "charge.refunded"),
    *("charge.dispute.created", "charge.dispute.closed", "checkout.session.completed"),
    *("customer.created", "customer.updated", "customer.deleted"),
    *("customer.subscription.created", "customer.subscription.updated"),
    *("customer.subscription.deleted", "customer.subscription.trial_will_end"),
    *("invoice.created", "invoice.finalized", "invoice.paid", "invoice.payment_failed"),
    *("invoice.payment_succeeded", "invoice.upcoming", "invoice.voided"),
    *("payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled"),
    *("payout.created", "payout.paid", "payout.failed", "refund.created", "review.opened"),
)
_FAMILIES: Final = frozenset(event.partition(".")[0] for event in EVENTS)
_QUIET: Final = frozenset({"payment_intent.created", "charge.updated", "invoice.updated"})


def _amount(thing: Part) -> str:
    currency = thing.word("currency", "").lower()
    for name in ("amount", "amount_due", "amount_total", "total"):
        value = thing.number(name, -1)
        if value >= 0 and currency.isalpha():
            shown = f"{value:.0f}" if currency in _WHOLE else f"{value / 100:.2f}"
            return f"{shown} {currency.upper()}"
    return ""


def translate(request: WebhookRequest) -> Translated:
    """Translate a request from Stripe."""
    payload = request.payload
    event = payload.word("type")
    if event in _QUIET:
        return None
    if event.partition(".")[0] not in _FAMILIES:
        raise Unsupported(event)
    thing = payload.part("data.object")
    number = thing.line("id", "")
    kind = title_case(thing.line("object", event.rpartition(".")[0])).replace(".", " ")
    live = "" if payload.flag("livemode") else "test/"
    plural = {"charge": "payments", "payment_intent": "payments", "customer": "customers"}
    page = plural.get(thing.word("object", ""), f"{thing.word('object', '')}s")
    is_plain = number.replace("_", "").isalnum() and page.replace("_", "").isalnum()
    url = f"https://dashboard.stripe.com/{live}{page}/{number}" if is_plain and number else ""
    verb = title_case(event.rpartition(".")[2]).lower()
    amount = _amount(thing)
    items = facts(
        amount=amount,
        customer=thing.line("customer_email", thing.line("email", "")),
        customer_ID=thing.line("customer", ""),
        status=thing.line("status", ""),
        description=thing.line("description", ""),
        reason=thing.line("failure_message", thing.line("reason", "")),
    )
    changed = payload.find("data.previous_attributes")
    if changed is not None and event.endswith("updated"):
        names = [title_case(name).lower() for name, _ in changed.items()]
        items.append(f"* Changed: {', '.join(names[:20])}")
    text = paragraphs(f"{kind} {link(number, url)}: {verb}\n", *items)
    topic = thing.line("customer", "") or number or "Stripe"
    return Post(topic, text.rstrip("\n"), event)


STRIPE: Final = Integration("stripe", "Stripe", translate, EVENTS, timed("stripe-signature"))
