"""Support vector machines over n-grams of words."""
