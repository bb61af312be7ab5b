"""`barnabas produce` and `barnabas consume`: lines to records and records to lines."""
