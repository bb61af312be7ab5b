"""Compiled counting of requests into quotas: the common case of SessionQuota."""
