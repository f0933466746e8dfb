"""Tools for testing programs that work on trees: contracts, random trees, random bracket files."""
