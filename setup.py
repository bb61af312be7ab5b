"""Only what pyproject.toml cannot say: the optional compiled kernel.

Without a C compiler (or Python's headers) the extension is left out with a warning and the plain Python twin,
barnabas/protocol/records/kernel_python.py, does the same work.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNEL = "barnabas.protocol.records._kernel"

extensions = cythonize(
    [Extension(KERNEL, [KERNEL.replace(".", "/") + ".pyx"], extra_compile_args=["-O3"])], language_level=3
)
for extension in extensions:
    extension.optional = True  # here: cythonize makes new extensions and does not take this over

setup(ext_modules=extensions)
