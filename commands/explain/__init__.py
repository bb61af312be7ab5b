"""`barnabas explain`: why a log is as it is, and what happens to it next."""
