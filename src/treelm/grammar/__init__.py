"""Context-free machinery: grammars, lexicons, charts."""
