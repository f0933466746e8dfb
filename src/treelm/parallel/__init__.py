"""Executors, memory limits and progress."""
