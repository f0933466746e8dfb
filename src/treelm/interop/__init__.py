"""Types of other packages, each imported only when used."""
