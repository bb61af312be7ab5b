"""`barnabas user`: users with SCRAM passwords."""
