"""config/kubernetes/barnabas.yml: valid by the schemas of Kubernetes, and made for the image of the Dockerfile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.config.loader import load
from tests.support.building import installed_packages
from tests.support.daemon import REPOSITORY

MANIFEST = REPOSITORY / "config" / "kubernetes" / "barnabas.yml"
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()
OLDEST, NEWEST = "1.29", "1.37"


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_manifest_is_valid_in_kubernetes(version: str) -> None:
    packages = installed_packages(Path(__file__).parent / "kubernetes-validate.txt")

    done = subprocess.run(
        [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, str(MANIFEST)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    kinds = re.findall(r"passed for resource (\S+) against version", said)
    assert kinds == ["service/barnabas", "service/barnabas-pods", "networkpolicy/barnabas", "statefulset/barnabas"]


def test_user_ports_and_folder_are_those_of_the_image() -> None:
    text = MANIFEST.read_text()
    (user,) = re.findall(r"--uid (\d+)", DOCKERFILE)
    (folder,) = re.findall(r"^VOLUME (\S+)", DOCKERFILE, re.MULTILINE)
    (exposed,) = re.findall(r"^EXPOSE (.+)", DOCKERFILE, re.MULTILINE)

    assert set(re.findall(r"(?:runAsUser|runAsGroup|fsGroup): (\d+)", text)) == {user}
    assert f"mountPath: {folder}\n" in text
    assert set(re.findall(r"(?:containerPort|prometheus.io/port): \"?(\d+)", text)) <= set(exposed.split())


def test_the_environment_is_a_configuration_that_the_broker_accepts() -> None:
    environ = dict(re.findall(r"- name: (BARNABAS_\w+)\n +value: (.+)", MANIFEST.read_text()))
    environ["BARNABAS_ADVERTISED_LISTENERS"] = environ["BARNABAS_ADVERTISED_LISTENERS"].replace("$(NAMESPACE)", "shop")

    config = load(environ=environ)

    assert len(environ) == 4
    assert all("open to the network without encryption" in warning for warning in config.warnings)
    assert [str(each) for each in config.log_dirs] == ["/var/lib/barnabas/data"]
    advertised = config.advertised_listeners["PLAINTEXT"]
    assert (advertised.host, advertised.port) == ("barnabas.shop.svc", 9092)
