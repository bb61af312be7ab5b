"""Text forms of mirrors in the metadata log: definitions, and the topics that a mirror has taken. No I/O."""
