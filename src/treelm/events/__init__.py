"""What is counted: templates, events, counts."""
