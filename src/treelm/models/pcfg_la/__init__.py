"""Grammars with latent annotations, trained by splitting and merging."""
