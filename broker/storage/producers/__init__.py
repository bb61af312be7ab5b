"""What a log knows of its producers: entries, duplicate detection, open transactions, snapshots, expiration."""
