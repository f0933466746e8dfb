"""Reports of experiments: what was measured, on what, with what, and how certain it is."""
