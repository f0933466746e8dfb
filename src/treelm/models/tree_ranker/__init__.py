"""Rankers that choose among the best trees of a parser by features of whole trees."""

from treelm.models.tree_ranker.model import TreeRankerModel

__all__ = ["TreeRankerModel"]
