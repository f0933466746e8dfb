"""Human judgements of which of two texts is better: sheets out, answers in."""
