"""The daemon: connections, dispatch, one handler per API, partitions, metadata, metrics and the server's life cycle."""
