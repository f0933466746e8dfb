"""Context-free grammars, lexicons and charts."""
