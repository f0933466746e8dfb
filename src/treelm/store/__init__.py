"""The model folder: a manifest, mapped tables, and nothing that could run code."""
