"""A causal language model of transformers, small enough to be made on the spot."""

from __future__ import annotations

from pathlib import Path

import treelm


def write_tiny_transformer(folder: Path, *, marks_first: bool = False, tokens: int = 400) -> None:
    """Write a GPT-2 of a few thousand random weights, and a byte-level tokenizer of our text.

    Args:
        folder: Where to.
        marks_first: Whether the first word of a text begins like all others.
        tokens: Size of the vocabulary.
    """
    import tokenizers
    import torch
    import transformers

    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=marks_first)
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=tokens,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = (" ".join(tree.words) for tree in treelm.sample_treebank())
    inner.train_from_iterator(text, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.6,
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
