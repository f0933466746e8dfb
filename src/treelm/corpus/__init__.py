"""What is read: files, brackets, plain text, documents, raw text, unknown words."""
