"""Sentences made wrong on purpose: drawn from a trigram model, or edited by one error each."""
