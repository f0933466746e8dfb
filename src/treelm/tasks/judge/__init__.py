"""People judge which of two texts is better: sheets out, answers in. Nothing stands in for them."""
