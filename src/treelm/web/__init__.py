"""The playground: models behind a page and a JSON API, for people with a browser."""
