"""The Helm chart, rendered by Helm's own engine and checked against Kubernetes' schemas.

`make .venv/.chart` installs both. Tests that need them are skipped without.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # has no types

import tertulia
from tertulia.app.config import load
from tertulia.service.config import SECRETS, Config
from tests.unit.test_deploy import environments

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
EXAMPLES = sorted((CHART / "ci").glob("*.yaml"))
OLDEST = "1.27"

SQLITE: dict[str, Any] = {
    "image": {"repository": "registry.example.com/tertulia"},
    "externalUrl": "https://chat.example.com",
}
POSTGRESQL: dict[str, Any] = {
    **SQLITE,
    "database": "postgresql",
    "settings": {"files_url": "s3://files?region=x"},
    "secrets": {"existingSecret": "chat", "keys": ["secret", "database_url"]},
}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "r.example/t", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "nameOverride": "talk",
    "fullnameOverride": "conversations",
    "settings": {
        "max_import_size_mib": 1_048_576,
        "access_log": True,
        "mail_from": 'a "b" <c@d.example>',
        "log_format": "text",
        "smtp_user": "Café ☕ $(HOME) {{ 1 }}",
    },
    "secrets": {"existingSecret": "s", "keys": ["secret", "database_url", "smtp_password"]},
    "service": {"type": "LoadBalancer", "port": 8080, "annotations": {"a": "b"}},
    "ingress": {"enabled": True, "className": "traefik", "annotations": {"a": "b"}},
    "persistence": {"existingClaim": "files"},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "networkPolicy": {
        "enabled": True,
        "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443}]}],
    },
    "metrics": {
        "serviceMonitor": {"enabled": True, "interval": "1m", "labels": {"a": "b"}},
        "alerts": {"enabled": True, "labels": {"a": "b"}},
        "dashboard": {"enabled": True},
    },
    "serviceAccountName": "chat",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "chat", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "high",
    "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/ca/ca.pem"}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
}
VALUES = {
    **{f"example-{path.stem}": yaml.safe_load(path.read_text()) for path in EXAMPLES},
    "sqlite": SQLITE,
    "sqlite-disk": {
        **SQLITE,
        "persistence": {"size": "1Ti", "storageClass": "fast", "annotations": {"a": "b"}},
        "resources": {},
        "clusterNetworks": ["fd00::/8", "10.0.0.0/8"],
    },
    "postgresql": POSTGRESQL,
    "everything": {**POSTGRESQL, **EVERYTHING},
    "everything-sqlite": {
        **SQLITE,
        **EVERYTHING,
        "secrets": {"existingSecret": "s", "keys": ["smtp_password"]},
    },
}


@pytest.fixture(scope="module")
def helm() -> Any:
    return pytest.importorskip("helm_python", reason="run: make .venv/.chart")


@pytest.fixture(scope="module")
def schemas() -> Any:
    return pytest.importorskip("kubernetes_validate", reason="run: make .venv/.chart")


def rendered(helm: Any, values: dict[str, Any], *, upgrade: bool = False) -> dict[str, Any]:
    """Return the documents by kind. There's one of each, in addition to the test's pod. The notes
    are `notes`."""
    with helm.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        found = chart.render(
            values, name="chat", namespace="talk", is_install=not upgrade, is_upgrade=upgrade
        )
    notes = found.pop("tertulia/templates/NOTES.txt")
    documents = [one for text in found.values() for one in yaml.safe_load_all(text) if one]
    kinds = {one["kind"]: one for one in documents}
    assert len(kinds) == len(documents)
    return {**kinds, "notes": notes}


def pod(documents: dict[str, Any]) -> Any:
    workload = documents.get("Deployment") or documents["StatefulSet"]
    return workload["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", VALUES)
def test_each_configuration_is_valid(helm: Any, schemas: Any, name: str, tmp_path: Path) -> None:
    report = helm.lint(CHART, VALUES[name], strict=True, kube_version=f"v{OLDEST}.0")
    assert [one for one in report["messages"] if one["severity"] > 1] == report["errors"] == []
    documents = rendered(helm, VALUES[name])
    documents.pop("notes")
    # The schemas of the Prometheus Operator aren't part of Kubernetes.
    monitor = documents.pop("ServiceMonitor", None)
    rules = documents.pop("PrometheusRule", None)
    for document in documents.values():
        for version in (OLDEST, schemas.latest_version()):
            schemas.validate(document, version, strict=True)
    if monitor or rules:
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "tertulia"}]
        service = documents["Service"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert wanted <= service["metadata"]["labels"].items()
        alerts = ROOT / "deploy" / "alerts.yaml"
        assert rules["spec"] == yaml.safe_load(alerts.read_text())
        board = (ROOT / "deploy" / "grafana.json").read_text()
        assert json.loads(documents["ConfigMap"]["data"]["tertulia.json"]) == json.loads(board)
    # The server accepts its settings.
    (given,) = [one for one in environments(documents) if "TERTULIA_EXTERNAL_URL" in one]
    (tmp_path / "secret").write_text("0123456789abcdef" * 2)
    config = load(
        {},
        environment={
            name: str(tmp_path / "secret") if name.endswith("_FILE") else value
            for name, value in given.items()
        },
    )
    assert config.external_url == "https://chat.example.com"
    assert config.proxy_trusted == config.metrics_allowed != ""


def test_the_manifests_are_valid(schemas: Any) -> None:
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            for version in (OLDEST, schemas.latest_version()):
                schemas.validate(document, version, strict=True)


def test_selectors_find_the_pods_and_nothing_else(helm: Any) -> None:
    documents = rendered(helm, VALUES["everything"])
    labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        documents["Deployment"]["spec"]["selector"]["matchLabels"],
        documents["Service"]["spec"]["selector"],
        documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        documents["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    tester = documents["Pod"]["metadata"]["labels"]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= tester.items()
    (rule,) = documents["NetworkPolicy"]["spec"]["ingress"]
    assert rule["from"][0]["podSelector"]["matchLabels"].items() <= tester.items()


def test_sqlite_has_one_pod_with_a_disk(helm: Any) -> None:
    documents = rendered(helm, {**SQLITE, "replicas": 5})
    assert documents.keys() == {"StatefulSet", "Service", "Pod", "notes"}
    spec = documents["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    assert [one["metadata"]["name"] for one in spec["volumeClaimTemplates"]] == ["data"]
    assert "data" not in [one["name"] for one in pod(documents)["volumes"]]
    claimed = rendered(helm, {**SQLITE, "persistence": {"existingClaim": "disk"}})
    assert "volumeClaimTemplates" not in claimed["StatefulSet"]["spec"]
    assert pod(claimed)["volumes"][0]["persistentVolumeClaim"]["claimName"] == "disk"


def test_postgresql_upgrades_one_pod_at_a_time(helm: Any) -> None:
    documents = rendered(helm, POSTGRESQL)
    spec = documents["Deployment"]["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    (container,) = pod(documents)["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    drains = {"name": "TERTULIA_DRAIN_SECONDS", "value": "15"}
    assert drains in container["env"]
    assert documents["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    assert "PodDisruptionBudget" not in rendered(helm, {**POSTGRESQL, "replicas": 1})


def test_settings_keep_their_values(helm: Any) -> None:
    (container,) = pod(rendered(helm, VALUES["everything"]))["containers"]
    given = {one["name"]: one["value"] for one in container["env"]}
    assert given["TERTULIA_MAX_IMPORT_SIZE_MIB"] == "1048576"
    assert given["TERTULIA_ACCESS_LOG"] == "true"
    assert given["TERTULIA_MAIL_FROM"] == 'a "b" <c@d.example>'
    assert given["TERTULIA_LOG_FORMAT"] == "text"
    assert given["TERTULIA_SMTP_USER"] == "Café ☕ $$(HOME) {{ 1 }}"
    assert given["TERTULIA_SMTP_PASSWORD_FILE"] == "/secrets/smtp_password"
    assert len(given) == len(container["env"])


def test_the_notes_say_what_is_missing(helm: Any) -> None:
    bare = rendered(helm, SQLITE)["notes"]
    assert "kubectl -n talk logs chat-tertulia-0" in bare
    assert "no backups" in bare
    assert "can't send email" in bare
    complete = rendered(helm, VALUES["example-postgresql"], upgrade=True)["notes"]
    assert "WARNING" not in complete
    assert "exec deploy/chat-tertulia -- tertulia check" in complete


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"externalUrl": SQLITE["externalUrl"]}, "image.repository is required"),
        ({"image": SQLITE["image"]}, "externalUrl"),
        ({**SQLITE, "externalUrl": "https://chat.example.com/path"}, "externalUrl"),
        ({**SQLITE, "databse": "sqlite"}, "databse"),
        ({**SQLITE, "settings": {"smtp_password": "hunter2"}}, "smtp_password"),
        ({**SQLITE, "settings": {"port": 80}}, "port"),
        ({**SQLITE, "secrets": {"keys": ["secret"]}}, "requires secrets.existingSecret"),
        ({**SQLITE, "secrets": {"existingSecret": "x"}}, "requires secrets.keys"),
        (
            {**SQLITE, "secrets": {"existingSecret": "x", "keys": ["database_url"]}},
            "SQLite has no database_url",
        ),
        ({**SQLITE, "networkPolicy": {"enabled": True}}, "networkPolicy.from is required"),
        ({**POSTGRESQL, "secrets": {}}, "requires a Secret with the keys secret and database_url"),
        ({**POSTGRESQL, "settings": {}}, "files need a bucket"),
        ({**POSTGRESQL, "drainSeconds": 110}, "at least drainSeconds"),
        (
            {
                **POSTGRESQL,
                "settings": {"files_url": "s3://x?region=y", "node_name": "x"},
                "secrets": {
                    "existingSecret": "chat",
                    "keys": ["secret", "database_url", "node_name"],
                },
            },
            "node_name is both in settings and in secrets.keys",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(
    helm: Any, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(helm.HelmError, match=re.escape(message)):
        rendered(helm, values)


# Without Helm


def test_the_schema_knows_the_values_and_the_secrets() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()
    for name, part in schema["properties"].items():
        if part.get("additionalProperties") is False:
            assert part["properties"].keys() == values[name].keys()
    elsewhere = set(schema["definitions"]["notHere"]["enum"])
    of_the_chart = {
        *("data_dir", "host", "port", "external_url", "drain_seconds"),
        *("proxy_trusted", "metrics_allowed", "database_url"),
    }
    assert elsewhere == {*SECRETS} | of_the_chart
    assert elsewhere <= set(Config.__struct_fields__)


def test_the_chart_has_the_version_of_the_server() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == tertulia.__version__
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
