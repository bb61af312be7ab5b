"""One authority for all tests of this folder, and directories on a disk."""

from __future__ import annotations

import pytest
import trustme

from tests.support.disk_paths import tmp_path, tmp_path_factory

__all__ = ["tmp_path", "tmp_path_factory"]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def server_certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1", "localhost", common_name="broker", organization_unit_name="tests")
