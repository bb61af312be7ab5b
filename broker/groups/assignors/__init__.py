"""Server-side assignors of consumer groups: who of a group reads which partition."""
