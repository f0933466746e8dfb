"""The composite language model: words before, exposed heads and topics (Tan et al. 2011)."""
