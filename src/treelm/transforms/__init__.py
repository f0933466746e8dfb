"""From tree to tree and back: one file per transform, each a pair of functions and a class."""
