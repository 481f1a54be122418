"""Bytes under keys: the storage contract, its backends and the wrappers around them."""
