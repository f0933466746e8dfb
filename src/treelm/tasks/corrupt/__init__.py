"""Negative examples: sentences sampled from a trigram model, or with one error each."""
