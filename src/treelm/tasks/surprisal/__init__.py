"""Surprisal and other measures, word by word: tables, pictures, stimuli."""
