"""Syntactic language models."""
