"""The systems: what every language model can do, and how each is found by its name."""
