"""Counting: templates, events, counts."""
