"""What is in a file or a model."""
