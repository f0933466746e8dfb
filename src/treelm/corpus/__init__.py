"""Reading input: files, brackets, plain text, documents, raw text, unknown words."""
