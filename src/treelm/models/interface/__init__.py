"""What a model is: the interface of every system, and what several systems share."""
