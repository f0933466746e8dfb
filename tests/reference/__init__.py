"""Slow, obviously-right reference of trees-and-transforms.md, used as test oracle."""
