"""Server-side assignors of consumer groups: pure functions from members and topics to target assignments."""
