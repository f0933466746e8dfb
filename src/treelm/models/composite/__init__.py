"""The composite model: n-grams, a structured language model and topics in one predictor."""
