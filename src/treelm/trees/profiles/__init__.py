"""Language profiles: what treelm knows about a language, as data."""
