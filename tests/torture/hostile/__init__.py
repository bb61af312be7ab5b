"""Peers that mean harm, beside a modest client: broken requests by the million, and requests that cost a lot."""
