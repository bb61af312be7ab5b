"""One authority for all tests of the session: keys take milliseconds to create."""

from __future__ import annotations

import pytest
import trustme


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def server_certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1", "localhost", common_name="broker")


@pytest.fixture(scope="session")
def client_certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("alice@example.org", common_name="alice")
