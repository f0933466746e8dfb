"""Evaluation: every measure, in one place."""
