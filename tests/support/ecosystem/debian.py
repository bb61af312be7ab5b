"""Programs from Debian's packages, unpacked into the cache instead of installed.

Packages that exclude each other, such as rsyslog and syslog-ng, can so be tested on one machine, and no service starts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.building import built, need, run_step

_INSTALLED = re.compile(r"^Inst (\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class Unpacked:
    """The root folder of unpacked packages, and the version of the first one."""

    root: Path
    version: str

    @property
    def libraries(self) -> str:
        """The value of LD_LIBRARY_PATH: every folder with a shared library of theirs."""
        return ":".join(sorted({str(path.parent) for path in self.root.rglob("lib*.so.*")}))


def unpacked(*packages: str) -> Unpacked:
    """Return these packages, with what they depend on and the machine lacks; without apt the test is skipped."""
    need("apt-get", packages[0])
    need("dpkg-deb", packages[0])

    def unpack(directory: Path) -> None:
        said = run_step(["apt-get", "install", "--simulate", "--no-install-recommends", *packages])
        run_step(["apt-get", "download", *sorted({*packages, *_INSTALLED.findall(said)})], directory)
        for package in directory.glob("*.deb"):
            run_step(["dpkg-deb", "--extract", str(package), str(directory / "root")])

    folder = built(f"deb-{packages[0]}", [], unpack)
    (package,) = folder.glob(f"{packages[0]}_*.deb")
    return Unpacked(folder / "root", package.name.split("_")[1])
