"""`barnabas doctor`: diagnoses client connections, and which programs can open a log directory."""
