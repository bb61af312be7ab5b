"""CRC-32C: the known answers, and that it costs no more to import than it must."""

from __future__ import annotations

import subprocess
import sys

from barnabas.protocol.crc32c import crc32c


def test_crc32c_gives_the_known_answers() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytearray(32))) == 0x8A9136AA  # RFC 3720, B.4
    assert crc32c(b"") == 0
    assert crc32c(b"56789", crc32c(b"1234")) == 0xE3069283


def test_importing_it_does_not_import_the_whole_package() -> None:
    code = (
        "import sys, barnabas.protocol.records; print('importlib.metadata' in sys.modules);"
        "from crc32c import crc32c; print(crc32c(b'123456789'))"
    )
    options = ["-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"]  # -S: editable installs load it too
    done = subprocess.run([sys.executable, *options], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", str(0xE3069283)]
