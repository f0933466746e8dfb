"""Topic models: PLSA and n-gram/PLSA (Tan et al. 2011)."""
