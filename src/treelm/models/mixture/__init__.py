"""Mixtures of models."""
