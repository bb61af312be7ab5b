"""The optional compiled kernels, which pyproject.toml cannot declare.

Each has a plain Python twin beside it, which is used when the extension could not be built (no C compiler or no
Python.h; the build prints a warning). The kernels share inline C through .pxd files, which are not compiled themselves.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = tuple(f"barnabas.protocol.records.kernels.{name}" for name in ("_cleaning", "_columns", "_kernel", "_scan"))

extensions = cythonize(
    [Extension(name, [name.replace(".", "/") + ".pyx"], extra_compile_args=["-O3"]) for name in KERNELS],
    language_level=3,
)
for extension in extensions:
    extension.optional = True  # set here: cythonize creates new Extension objects and drops this attribute

setup(ext_modules=extensions)
