#!/usr/bin/env python3
"""Checks the files of packaging/kubernetes without a cluster.

    check.py FOLDER SWITCHYARD OPENAPI FACTS

FACTS is JSON about switchyard.toml. Kubernetes' own kinds are checked against the schemas of the package
kubernetes-validate. PodMonitor, ScaledObject and KServe's kinds have no schema there: their fields are
compared with the lists below, which were written by hand.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

BY_HAND = {
    "PodMonitor": ("monitoring.coreos.com/v1", {"jobLabel", "selector", "podMetricsEndpoints"}),
    "ScaledObject": (
        "keda.sh/v1alpha1",
        {
            "scaleTargetRef",
            "minReplicaCount",
            "maxReplicaCount",
            "pollingInterval",
            "advanced",
            "fallback",
            "triggers",
        },
    ),
    "ServingRuntime": (
        "serving.kserve.io/v1alpha1",
        {"protocolVersions", "multiModel", "supportedModelFormats", "containers"},
    ),
    "InferenceService": ("serving.kserve.io/v1beta1", {"predictor"}),
}


class Manifests:
    def __init__(self, folder):
        self.folder = folder
        # A patch is only a part of its resource; kubectl joins them below.
        files = [file for file in sorted(folder.rglob("*.yaml")) if file.name != "admin-port.yaml"]
        self.documents = [
            (file.relative_to(folder), document)
            for file in files
            for document in yaml.safe_load_all(file.read_text())
        ]

    def of(self, kind, name=None):
        found = [
            document
            for _, document in self.documents
            if document["kind"] == kind and name in (None, document["metadata"]["name"])
        ]
        assert found, f"no {kind} {name or ''}"
        return found


def check_schema(at, document):
    kind = document["kind"]
    where = f"{at}: {kind}"
    if kind == "Kustomization":
        return
    if kind in BY_HAND:
        version, fields = BY_HAND[kind]
        assert document["apiVersion"] == version, where
        unknown = set(document["spec"]) - fields
        assert not unknown, f"{where}: unknown {unknown}"
        containers = document["spec"].get("containers")
        if containers:
            check_schema(at, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}})
        return
    version = kubernetes_validate.latest_version()
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except Exception as error:
        raise AssertionError(f"{where}: {error}") from error


def check_files(manifests):
    """Each file of a kustomization is there, and each file belongs to one."""
    named = {Path("kserve.yaml")}
    for at, document in manifests.documents:
        if document["kind"] != "Kustomization":
            continue
        folder = at.parent
        files = document.get("resources", [])
        files += [patch["path"] for patch in document.get("patches", []) if "path" in patch]
        files += [file for made in document.get("configMapGenerator", []) for file in made["files"]]
        for file in files:
            assert (manifests.folder / folder / file).exists(), f"{at}: no {file}"
            named.add(folder / file)
    left = {at for at, document in manifests.documents if document["kind"] != "Kustomization"} - named
    assert not left, f"in no kustomization: {left}"


def check_container(where, container, program, paths, facts):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name, port in ports.items():
        known = facts["ports"].get("http" if name == "http1" else name)
        assert port == known, f"{where}: port {name} is {port}, in switchyard.toml {known}"
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
        asked = container[probe]["httpGet"]
        assert asked["path"] in paths, f"{where}: {probe}: {asked['path']} is not in openapi.yaml"
        assert asked["port"] == "http" or asked["port"] == facts["ports"]["http"], f"{where}: {probe}"
    # clap refuses unknown arguments before it shows the help.
    args = [program, *container["args"], "--help"]
    told = subprocess.run(args, capture_output=True, text=True, check=False)
    assert told.returncode == 0, f"{where}: {args}: {told.stderr}"
    security = container["securityContext"]
    assert security["allowPrivilegeEscalation"] is False, where
    assert security["capabilities"] == {"drop": ["ALL"]}, where
    resources = container["resources"]
    assert resources["requests"]["cpu"] and resources["limits"]["memory"], where


def check_pods(manifests, program, paths, facts):
    for kind, name in [("Deployment", "switchyard-scheduler"), ("StatefulSet", "switchyard-workers")]:
        (workload,) = manifests.of(kind, name)
        spec = workload["spec"]["template"]["spec"]
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items(), name
        assert spec["terminationGracePeriodSeconds"] * 1000 >= facts["drain_ms"] + 2000, name
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["fsGroup"], name
        (container,) = spec["containers"]
        check_container(name, container, program, paths, facts)
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        mounts = [mount for mount in container["volumeMounts"] if not mount.get("readOnly")]
        for written in facts["writes"]:
            assert any(written.startswith(mount["mountPath"] + "/") for mount in mounts), written
        volumes = {volume["name"] for volume in spec["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, name


def check_workers(manifests, facts):
    (workers,) = manifests.of("StatefulSet")
    spec = workers["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["args"][:2] == ["worker", facts["worker"]]
    assert int(container["resources"]["requests"]["cpu"]) == facts["threads"]
    assert spec["replicas"] <= facts["at_most"]
    (service,) = manifests.of("Service", spec["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    (port,) = service["spec"]["ports"]
    assert facts["url"] == f"grpc://{service['metadata']['name']}:{port['port']}"
    (scaled,) = manifests.of("ScaledObject")
    target = scaled["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("StatefulSet", workers["metadata"]["name"])
    assert scaled["spec"]["maxReplicaCount"] == facts["at_most"]
    (trigger,) = scaled["spec"]["triggers"]
    assert facts["metric"] in trigger["metadata"]["query"]


def check_ports(manifests):
    """Services, policies and the monitor name ports and labels of pods."""
    pods = [
        (document["spec"]["template"]["metadata"]["labels"], document["spec"]["template"]["spec"]["containers"][0])
        for kind in ["Deployment", "StatefulSet"]
        for document in manifests.of(kind)
    ]

    def of(selector):
        found = [container for labels, container in pods if selector.items() <= labels.items()]
        assert found, f"no pod has {selector}"
        return {port["name"] for container in found for port in container["ports"]}

    for service in manifests.of("Service"):
        names = of(service["spec"]["selector"])
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names, service
    for policy in manifests.of("NetworkPolicy"):
        names = of(policy["spec"]["podSelector"]["matchLabels"])
        for rule in policy["spec"].get("ingress", []):
            assert {port["port"] for port in rule["ports"]} <= names, policy
        for rule in policy["spec"].get("egress", []):
            for peer in rule["to"]:
                if "podSelector" in peer:
                    assert {port["port"] for port in rule["ports"]} <= of(peer["podSelector"]["matchLabels"])
    (monitor,) = manifests.of("PodMonitor")
    names = of(monitor["spec"]["selector"]["matchLabels"])
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= names
    (budget,) = manifests.of("PodDisruptionBudget")
    of(budget["spec"]["selector"]["matchLabels"])


def check_rendered(folder):
    """The resources as kubectl renders them, patches included, where kubectl is installed."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        print("without kubectl: patches are not applied")
        return
    for base in ["base", "scaled"]:
        command = [kubectl, "kustomize", str(folder / base)]
        rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        documents = list(yaml.safe_load_all(rendered))
        for document in documents:
            check_schema(f"kustomize {base}", document)
        print(f"kustomize {base}: {len(documents)} resources")


def main():
    folder, program, openapi, facts = sys.argv[1:]
    manifests = Manifests(Path(folder))
    facts = json.loads(facts)
    paths = set(yaml.safe_load(Path(openapi).read_text())["paths"])
    for at, document in manifests.documents:
        check_schema(at, document)
    check_files(manifests)
    check_pods(manifests, program, paths, facts)
    (runtime,) = manifests.of("ServingRuntime")
    check_container("kserve.yaml", runtime["spec"]["containers"][0], program, paths, facts)
    check_workers(manifests, facts)
    check_ports(manifests)
    check_rendered(Path(folder))
    print(f"{len(manifests.documents)} documents")


if __name__ == "__main__":
    main()
