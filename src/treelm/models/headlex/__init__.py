"""Head-lexicalised models: a phrase generates its head, then modifiers outward with their words."""
