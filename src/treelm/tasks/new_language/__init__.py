"""A language profile proposed from a treebank, with the evidence for every part of it."""
