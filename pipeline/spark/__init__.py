"""Running Spark: the session of a job, the JVM's output, Python workers, and one sentence for what Spark raises."""
