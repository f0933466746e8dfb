"""English models for treelm. They are found by name, for example `treelm.load("en-parser")`."""
