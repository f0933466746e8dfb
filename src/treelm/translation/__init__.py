"""Phrase-based translation: weights of features, phrase tables, the decoder."""
