"""What is known about a causal language model that was trained elsewhere."""

from __future__ import annotations

from treelm.models.interface.config import Config


class NeuralConfig(Config):
    """Where the model came from."""

    folder: str
    """Folder of the model, as `save_pretrained` of transformers writes it."""
    architecture: str
    """Name of its class in transformers."""
