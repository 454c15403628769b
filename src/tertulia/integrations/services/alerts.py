"""Alertmanager, Prometheus, and Grafana, which send alerts in the same format."""

from collections.abc import Sequence
from typing import Final

from tertulia.integrations.incoming import Integration, Post, Translated, WebhookRequest
from tertulia.integrations.payloads import Malformed, Part, code, link, paragraphs
from tertulia.integrations.signatures import hmac_hex
from tertulia.model.numbers import counted

MAX_ALERTS: Final = 20
"""The most alerts of a group that are listed."""
EVENTS: Final = ("firing", "resolved")
_MARKS: Final = {"firing": "🚨 **Firing**", "resolved": "✅ **Resolved**"}
_NAMED: Final = frozenset({"alertname", "severity", "grafana_folder", "__alert_rule_uid__"})
"""Labels that aren't listed."""


def _labels(alert: Part, common: frozenset[str]) -> str:
    labels = [
        f"{name}={code(value.line('', ''))}"
        for name, value in alert.fields("labels").items()
        if name not in _NAMED and name not in common
    ]
    return ", ".join(labels[:10])


def _alert(alert: Part, status: str, common: frozenset[str]) -> str:
    name, severity = alert.line("labels.alertname", "Alert"), alert.line("labels.severity", "")
    state = alert.word("status", status)
    name = link(name, alert.url("generatorURL"))
    head = f"{_MARKS.get(state, state)}: {name}" + (f" ({severity})" if severity else "")
    summary = alert.line("annotations.summary", "")
    description = alert.text("annotations.description", alert.text("annotations.message", ""))
    links = [
        link(label, url)
        for label, url in (
            ("runbook", alert.url("annotations.runbook_url")),
            ("dashboard", alert.url("dashboardURL")),
            ("panel", alert.url("panelURL")),
            ("silence", alert.url("silenceURL") if state == "firing" else ""),
        )
        if url
    ]
    values = ", ".join(
        f"{key}={value.line('', '')}" for key, value in alert.fields("values").items()
    )
    return paragraphs(
        head,
        summary,
        description.strip() if description.strip() != summary else "",
        _labels(alert, common),
        f"Values: {values[:500]}" if values else "",
        " · ".join(links),
    )


def _group(alerts: Sequence[Part], status: str, payload: Part | None) -> Post:
    if not alerts:
        raise Malformed("it doesn't contain alerts")
    shared = payload.fields("commonLabels") if payload and len(alerts) > 1 else {}
    texts = [_alert(alert, status, frozenset(shared)) for alert in alerts[:MAX_ALERTS]]
    if len(alerts) > MAX_ALERTS:
        texts.append(f"… and {counted(len(alerts) - MAX_ALERTS, 'more alert', 'more alerts')}.")
    names = list(dict.fromkeys(alert.line("labels.alertname", "Alert") for alert in alerts))
    topic = names[0] if len(names) == 1 else f"{names[0]} and others"
    return Post(topic, "\n\n".join(texts), status)


def _alertmanager(request: WebhookRequest) -> Translated:
    payload = request.payload
    if isinstance(payload.value, list):
        return _prometheus(request)
    status = payload.word("status", "firing")
    return _group(payload.parts("alerts"), status, payload)


def _prometheus(request: WebhookRequest) -> Translated:
    """Translate alerts that Prometheus sends to an Alertmanager: a list in which resolved alerts
    aren't marked."""
    payload = request.payload
    if not isinstance(payload.value, list):
        return _alertmanager(request)
    return _group(payload.parts(), "firing", None)


def _grafana(request: WebhookRequest) -> Translated:
    payload = request.payload
    if payload.find("alerts") is not None:
        status = payload.word("status", "firing")
        return _group(payload.parts("alerts"), status, payload)
    # Before Grafana 9.
    state = payload.line("state")
    title = payload.line("ruleName", "") or payload.line("title")
    matches = [
        f"* {part.line('metric', '')}: {part.line('value', '')}"
        for part in payload.parts("evalMatches")[:MAX_ALERTS]
    ]
    status = "resolved" if state == "ok" else "firing"
    text = paragraphs(
        f"{_MARKS[status]}: {link(title, payload.url('ruleUrl'))} ({state})",
        payload.text("message", ""),
        "\n" + "\n".join(matches) if matches else "",
        link("image", payload.url("imageUrl")) if payload.url("imageUrl") else "",
    )
    return Post(title, text, status)


GRAFANA: Final = Integration(
    "grafana", "Grafana", _grafana, EVENTS, hmac_hex("x-grafana-alerting-signature")
)
ALERTMANAGER: Final = Integration("alertmanager", "Alertmanager", _alertmanager, EVENTS)
PROMETHEUS: Final = Integration("prometheus", "Prometheus", _prometheus, EVENTS)
