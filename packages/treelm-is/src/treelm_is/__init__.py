"""Ready models of Icelandic for treelm; the folders beside this file are model folders."""
