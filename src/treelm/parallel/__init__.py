"""Who does the work: executors, and how they report progress."""
