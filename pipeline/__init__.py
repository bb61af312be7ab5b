"""The PySpark pipeline: topics and bare segment files as DataFrames, a sink, and jobs over them.

Data: broker (native dialect) or segment files -> kernel -> Arrow batches -> Spark, and from Spark's rows to the broker.
"""
