"""Types, files and calls of other packages, each imported only when used."""
