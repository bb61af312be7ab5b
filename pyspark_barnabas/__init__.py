"""The hook by which Spark finds `format("barnabas")`: it imports every top-level package named `pyspark_*`.

Import-light, because Spark does so in every session, and does not catch what an import raises.
"""

from barnabas.pipeline.data_source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
