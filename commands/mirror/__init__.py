"""`barnabas mirror`: topics of another cluster that the broker copies."""
