"""Support vector machines over word n-grams."""
