"""Other people's types, each imported only when used."""
