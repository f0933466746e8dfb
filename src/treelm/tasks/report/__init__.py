"""Reports of experiments: what was measured, on what, with what, and how sure it is."""
