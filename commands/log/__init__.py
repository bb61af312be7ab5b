"""`barnabas log`: dump, verify, reindex, truncate, compact and abort-transaction on files, without a broker."""
