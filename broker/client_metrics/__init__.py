"""Metrics of clients (KIP-714): subscriptions, the clients that push, and what arrived from them."""
