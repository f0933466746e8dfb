"""Classifiers by counts of what one parse of a sentence shows."""

from treelm.models.tree_features.model import TreeFeaturesModel

__all__ = ["TreeFeaturesModel"]
