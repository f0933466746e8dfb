"""Head-lexicalised models: a phrase draws its head, then modifiers outward with their words."""
