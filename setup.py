"""Only what pyproject.toml cannot say: the optional compiled kernels.

Each stands beside its plain Python twin, which does the same work where the extension was left out, with a warning,
because there is no C compiler (or no Python.h). They share inline C through .pxd files, which need no building.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = tuple(f"barnabas.protocol.records.kernels.{name}" for name in ("_cleaning", "_columns", "_kernel", "_scan"))

extensions = cythonize(
    [Extension(name, [name.replace(".", "/") + ".pyx"], extra_compile_args=["-O3"]) for name in KERNELS],
    language_level=3,
)
for extension in extensions:
    extension.optional = True  # here: cythonize makes new extensions and does not take this over

setup(ext_modules=extensions)
