"""Grammars with latent annotations, trained by split-merge."""
