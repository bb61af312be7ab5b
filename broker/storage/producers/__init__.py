"""Producer state of a log: duplicate detection, open transactions, snapshots, expiration."""
