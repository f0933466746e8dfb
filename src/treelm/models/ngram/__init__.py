"""N-gram models: each word given the few before it (Kneser & Ney; Chen & Goodman)."""
