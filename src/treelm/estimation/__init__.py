"""From counts to probabilities: discounts, weights, back-off tables."""
