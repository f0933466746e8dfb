"""Causal language models of Hugging Face transformers as models of treelm."""
