"""Facts about a group that only its broker has: who it waits for, and what retention takes before it has read it."""
