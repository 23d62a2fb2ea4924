"""`timely k8s`: the manifest of a run on Kubernetes.

- The *Secret* has keys that are made for this manifest, unless one is named that exists already.
- The headless *Service* gives each pod a name, also before it is ready, because pods look for the first one by name.
- The *Job* is indexed and ends with the program; its pods are started again when they fail, as often as `--restart`
  states. Or the *StatefulSet* runs a program that does not end, and starts its pods all at the same time.

Each pod runs one process by `timely run --on kubernetes` (`timely.cluster.kubernetes`), as an ordinary user without
privileges. It can write only to a directory for temporary files and to the one for durable state.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from timely.cluster.kubernetes import HEAD_PORT, HEALTH_PORT
from timely.communication.curve import KEY_FILE, new_keys
from timely.errors import ConfigError

USER = 1000
KEYS_PLACE, STATE_PLACE = "/etc/timely", "/state"
RENDEZVOUS_SECONDS = 600
"""How long pods wait for each other: images are fetched, and Kubernetes pauses longer before each further start."""
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i|[eE][0-9]+)?")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?")
Value = dict[str, "Value"] | list["Value"] | str | int | bool

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._-]*( [A-Za-z0-9/._-]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""Words that are not text in one version of YAML or another."""


def text(options: argparse.Namespace) -> str:
    """Return the manifest that the options of `timely k8s` ask for."""
    return "---\n".join(document(each) for each in manifest(options))


def manifest(options: argparse.Namespace) -> list[Value]:
    if not options.target:
        raise ConfigError("nothing to run: give the script, as its path is in the image, and its arguments")
    name = options.name or re.sub(r"[^a-z0-9]+", "-", Path(options.target[0]).stem.lower()).strip("-")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid name for pods: use --name with lower-case letters, digits and hyphens, at most 42"
        )
    if options.processes < 1 or options.workers < 1:
        raise ConfigError("there must be at least one process and one worker")
    if options.restart < 0:
        raise ConfigError(f"--restart is how often a job starts again, at least 0, not {options.restart}")
    if not _QUANTITY.fullmatch(options.memory):
        raise ConfigError(f"--memory is a size as Kubernetes writes it, such as 2Gi, not {options.memory!r:.80}")
    labels: dict[str, Value] = {"app.kubernetes.io/name": name}
    objects: list[Value] = []
    if options.secret is None:
        text = base64.b64encode(b"\n".join([*new_keys(), b""])).decode()
        meta = _metadata(f"{name}-keys", labels, options)
        objects.append(_object("v1", "Secret", meta, type="Opaque", data={KEY_FILE: text}))
    service: dict[str, Value] = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels,
        "ports": [{"name": "rendezvous", "port": HEAD_PORT}],
    }
    meta = _metadata(name, labels, options)
    objects.append(_object("v1", "Service", meta, spec=service))
    pod = _pod(name, labels, options)
    objects.append(
        _object("apps/v1", "StatefulSet", meta, spec=_stateful_set(name, labels, pod, options))
        if options.service
        else _object("batch/v1", "Job", meta, spec=_job(pod, options))
    )
    return objects


def _object(version: str, kind: str, metadata: Value, **rest: Value) -> Value:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _metadata(name: str, labels: Value, options: argparse.Namespace) -> Value:
    metadata: dict[str, Value] = {"name": name, "labels": labels}
    return metadata | ({"namespace": options.namespace} if options.namespace else {})


def _job(pod: dict[str, Value], options: argparse.Namespace) -> Value:
    # A job demands this. A StatefulSet permits only `Always`, which is what it has without the setting.
    pod["spec"]["restartPolicy"] = "OnFailure"  # type: ignore[index, call-overload]
    return {
        "completionMode": "Indexed",
        "completions": options.processes,
        "parallelism": options.processes,
        # When one pod fails, all do. Kubernetes counts each of them.
        "backoffLimit": options.restart * options.processes,
        "template": pod,
    }


def _stateful_set(name: str, labels: Value, pod: Value, options: argparse.Namespace) -> Value:
    return {
        "serviceName": name,
        "replicas": options.processes,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": pod,
    }


def _pod(name: str, labels: Value, options: argparse.Namespace) -> dict[str, Value]:
    volumes: list[Value] = [
        {"name": "keys", "secret": {"secretName": options.secret or f"{name}-keys", "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    ]
    if options.state is not None:
        volumes.append({"name": "state", "persistentVolumeClaim": {"claimName": options.state}})
    spec: dict[str, Value] = {
        "subdomain": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 20,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(options)],
        "volumes": volumes,
    }
    return {"metadata": {"labels": labels}, "spec": spec}


def _container(options: argparse.Namespace) -> Value:
    command: list[Value] = ["timely", "run", "--on", "kubernetes", "--curve", KEYS_PLACE]
    if options.workers != 1:
        command += ["-w", str(options.workers)]
    mounts: list[Value] = [
        {"name": "keys", "mountPath": KEYS_PLACE, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if options.state is not None:
        command += ["--state", STATE_PLACE]
        mounts.append({"name": "state", "mountPath": STATE_PLACE})
    resources: dict[str, Value] = {"cpu": str(options.workers), "memory": options.memory}
    environment = {"TIMELY_PROCESSES": options.processes, "TIMELY_RENDEZVOUS_SECONDS": RENDEZVOUS_SECONDS}
    return {
        "name": "timely",
        "image": options.image,
        "command": [*command, *(word.replace("$", "$$") for word in options.target)],  # or $(NAME) is expanded
        "env": [{"name": name, "value": str(value)} for name, value in environment.items()],
        "ports": [
            {"name": "rendezvous", "containerPort": HEAD_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": _probe("/live", periodSeconds=2, failureThreshold=60),
        "livenessProbe": _probe("/live", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": _probe("/ready", periodSeconds=5),
        "volumeMounts": mounts,
    }


def _probe(path: str, **settings: int) -> Value:
    return {"httpGet": {"path": path, "port": "health"}, **settings}


def document(value: Value) -> str:
    """Return a value as a document of YAML for people: text is in quotes where it could be read as something else.

    Only what manifests consist of can be written: dictionaries with names as keys, lists, text, numbers and truth
    values.

    >>> print(document({"kind": "Job", "spec": {"completions": 2, "args": ["-n", "2"], "volumes": []}}), end="")
    kind: Job
    spec:
      completions: 2
      args:
        - "-n"
        - "2"
      volumes: []
    """
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Value) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            first, *rest = _lines(each)
            if isinstance(each, (dict, list)) and each:
                yield f"{_scalar(name)}:"
                yield f"  {first}"
            else:
                yield f"{_scalar(name)}: {first}"
            yield from (f"  {line}" for line in rest)
    elif isinstance(value, list) and value:
        for each in value:
            first, *rest = _lines(each)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Value) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    # What begins with a letter or "/" and has neither ":" nor "#" is text in every version of YAML, but for some words.
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON writes characters beyond 16 bits as two, which YAML does not put together.
    return '"' + "".join(json.dumps(c)[1:-1] if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in value) + '"'


def add_options(parser: Any) -> None:
    parser.add_argument("--image", required=True, help="the image that has the script and this package")
    parser.add_argument("--name", help="name of the job and its pods (default: that of the script)")
    parser.add_argument("--namespace", help="namespace (default: the current one)")
    parser.add_argument("-n", "--processes", type=int, default=1, help="number of pods (default: 1)")
    parser.add_argument("-w", "--workers", type=int, default=1, help="workers, and processors, per pod (default: 1)")
    parser.add_argument("--memory", default="2Gi", help="memory of each pod (default: 2Gi)")
    parser.add_argument("--service", action="store_true", help="a program that does not end: write a StatefulSet")
    parser.add_argument("--restart", type=int, default=3, metavar="TIMES", help="how often a job starts again")
    parser.add_argument("--state", metavar="CLAIM", help="volume claim that all pods share, for durable collections")
    parser.add_argument("--secret", metavar="NAME", help="secret that has keys, instead of one with new ones")
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script and its arguments")
