"""`barnabas pipeline`: one module per Spark job, imported when it runs."""
