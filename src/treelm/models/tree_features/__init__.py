"""Classifiers over feature counts of one parse of a sentence."""

from treelm.models.tree_features.model import TreeFeaturesModel

__all__ = ["TreeFeaturesModel"]
