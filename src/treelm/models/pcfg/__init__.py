"""Treebank grammars."""
