"""What people do with treelm; the command line and the playground call these and have no logic."""
