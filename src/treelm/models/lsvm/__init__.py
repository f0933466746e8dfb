"""Latent support vector machines over trees."""

from treelm.models.lsvm.model import LatentSvmModel

__all__ = ["LatentSvmModel"]
