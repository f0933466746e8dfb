"""An LSTM and a small transformer that predict words, trained on the text that other models have.

Both give every word of a vocabulary, and the end of a sentence, a probability by a softmax in
clusters of frequency (Grave et al. 2017), which is exact and far cheaper than a flat one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Ids = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

#: Networks by name.
KINDS = ("LSTM", "Transformer")
#: Words of the clusters of the softmax, from the most frequent on.
_CLUSTERS = (2_000, 20_000)
#: Positions that are worked on at a time, with the shortest sentences more.
_POSITIONS = 2_048
_LARGEST_GRADIENT = 1.0
_WARMING_UP = 200


@dataclass(frozen=True)
class Sizes:
    """How large a network is, and how it is trained.

    Args:
        embedding: Numbers of a word.
        width: Numbers of a state.
        layers: Of the network.
        heads: Of each layer of a transformer.
        dropout: Share of numbers that are left out during training.
        rate: Highest learning rate.
        epochs: How often the text is read.
    """

    embedding: int = 128
    width: int = 256
    layers: int = 1
    heads: int = 4
    dropout: float = 0.3
    rate: float = 2e-3
    epochs: int = 8

    @classmethod
    def of(cls, kind: str, epochs: int) -> Sizes:
        """Return the usual sizes of a kind of network."""
        sizes = cls(epochs=epochs)
        return sizes if kind == "LSTM" else replace(sizes, layers=3, dropout=0.2, rate=1e-3)


class Network(nn.Module):
    """Predicts each word of a sentence from those before it.

    Args:
        kind: One of `KINDS`.
        outcomes: Number of words, the end among them.
        sizes: Its sizes.
        longest: Most positions of a sentence.
    """

    def __init__(self, kind: str, outcomes: int, sizes: Sizes, longest: int) -> None:
        super().__init__()
        self.words = nn.Embedding(outcomes, sizes.embedding)
        nn.init.normal_(self.words.weight, std=0.05)
        self.widen = nn.Linear(sizes.embedding, sizes.width)
        self.drop = nn.Dropout(sizes.dropout)
        if kind == "LSTM":
            self.lstm: nn.Module = nn.LSTM(sizes.width, sizes.width, sizes.layers, batch_first=True)
        else:
            self.places = nn.Embedding(longest, sizes.width)
            nn.init.normal_(self.places.weight, std=0.02)
            layer = nn.TransformerEncoderLayer(
                sizes.width,
                sizes.heads,
                2 * sizes.width,
                sizes.dropout,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            self.layers = nn.TransformerEncoder(
                layer, sizes.layers, nn.LayerNorm(sizes.width), enable_nested_tensor=False
            )
        self.kind = kind
        clusters = [size for size in _CLUSTERS if size < outcomes]
        self.outcomes = nn.AdaptiveLogSoftmaxWithLoss(sizes.width, outcomes, clusters or [1])

    def states(self, given: Tensor) -> Tensor:
        """Return a state for each position, which knows what was given up to it."""
        seen = self.widen(self.drop(self.words(given)))
        if self.kind == "LSTM":
            return self.drop(self.lstm(seen)[0])
        length = given.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=given.device).triu(1)
        seen = seen + self.places(torch.arange(length, device=given.device))
        return self.drop(self.layers(self.drop(seen), mask=future))

    def log_probs(self, given: Tensor, expected: Tensor, sizes: Tensor) -> Tensor:
        """Return the log probability of every word and end, row by row without what fills up."""
        inside = torch.arange(given.shape[1], device=given.device) < sizes[:, None]
        states = self.states(given)[inside]
        if torch.is_autocast_enabled(given.device.type):  # the softmax wants one kind of numbers
            states = states.to(torch.get_autocast_dtype(given.device.type))
        return self.outcomes(states, expected[inside]).output


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences that are worked on together.

    Args:
        places: Their numbers in the text.
        given: What stands before each position, filled up with ends.
        expected: What stands there.
        sizes: Positions of each.
    """

    places: Ids
    given: Tensor
    expected: Tensor
    sizes: Tensor


def batches(text: Sequence[Ids], end: int, order: Ids) -> Iterator[Batch]:
    """Yield the sentences, shorter ones first, the end before and after each.

    Args:
        text: Numbers of words.
        end: Number of the end.
        order: The sentences by length.
    """
    first = 0
    while first < len(order):
        last = first + 1
        while last < len(order) and (last + 1 - first) * (len(text[order[last]]) + 1) <= _POSITIONS:
            last += 1
        places = order[first:last]
        width = max(len(text[place]) for place in places) + 1
        whole = np.full((len(places), width + 1), end, np.int64)
        for row, place in enumerate(places):
            whole[row, 1 : 1 + len(text[place])] = text[place]
        sizes = torch.tensor([len(text[place]) + 1 for place in places])
        rows = torch.from_numpy(whole)
        yield Batch(places, rows[:, :-1], rows[:, 1:], sizes)
        first = last


def by_length(text: Sequence[Ids], shuffled: np.random.Generator | None = None) -> Ids:
    """Return the numbers of sentences by length, those of the same length shuffled."""
    lengths = np.array([len(sentence) for sentence in text])
    ties = np.zeros(len(text)) if shuffled is None else shuffled.random(len(text))
    return np.lexsort((ties, lengths)).astype(np.int64)


@dataclass
class NetworkModel:
    """A network with its vocabulary.

    Args:
        network: The network.
        ranks: For each word of the vocabulary its place by frequency, the number that the network
            knows it by; the end comes last.
        device: Where it works.
    """

    network: Network
    ranks: Ids
    device: str

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return sum(each.numel() for each in self.network.parameters())

    def scores(self, text: Sequence[Ids]) -> Numbers:
        """Return the log probability of each sentence, its end included."""
        found = np.empty(len(text))
        numbers = [self.ranks[sentence] for sentence in text]
        self.network.eval()
        with torch.inference_mode():
            for batch in batches(numbers, int(self.ranks[-1]), by_length(numbers)):
                words = self.network.log_probs(*self._there(batch)).double().cpu().numpy()
                ends = np.cumsum(batch.sizes.numpy())
                found[batch.places] = np.add.reduceat(words, np.insert(ends[:-1], 0, 0))
        return found

    def _there(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        given, expected, sizes = (
            each.to(self.device) for each in (batch.given, batch.expected, batch.sizes)
        )
        return given, expected, sizes

    def learn(
        self,
        text: Sequence[Ids],
        held_out: Sequence[Ids],
        sizes: Sizes,
        *,
        seed: int,
        checkpoint: Path,
        tell: Callable[[str], object],
    ) -> None:
        """Train the network, and keep what is best on held-out sentences; resumes between epochs.

        Args:
            text: Numbers of words by the vocabulary.
            held_out: The same of other sentences.
            sizes: How it is trained.
            seed: Seed of the order of batches.
            checkpoint: Where the state after an epoch is kept.
            tell: Called with what an epoch gave.
        """
        numbers = [self.ranks[sentence] for sentence in text]
        optimizer = torch.optim.AdamW(self.network.parameters(), sizes.rate, weight_decay=0.01)
        positions = sum(len(sentence) + 1 for sentence in numbers)
        held_out_positions = sum(len(sentence) + 1 for sentence in held_out)
        done, best, best_state = 0, math.inf, self.network.state_dict()
        if checkpoint.exists():
            kept = torch.load(checkpoint, weights_only=True)
            self.network.load_state_dict(kept["network"])
            optimizer.load_state_dict(kept["optimizer"])
            done, best, best_state = kept["done"], kept["best"], kept["best_state"]
        step = 0
        for epoch in range(sizes.epochs):
            random = np.random.default_rng((seed, epoch))
            torch.manual_seed(1_000 * seed + epoch)
            together = list(
                batches(numbers, int(self.ranks[-1]), by_length(numbers, shuffled=random))
            )
            whole = sizes.epochs * len(together)
            if epoch < done:
                step += len(together)
                continue
            began, total = time.process_time(), 0.0
            self.network.train()
            for place in random.permutation(len(together)):
                step += 1
                warm = min(1.0, step / min(_WARMING_UP, 1 + whole // 20))
                for group in optimizer.param_groups:
                    group["lr"] = sizes.rate * warm * (1 + math.cos(math.pi * step / whole)) / 2
                optimizer.zero_grad(set_to_none=True)
                # Half as many bits do for learning, and take a third of the time.
                with torch.autocast(self.device.partition(":")[0], torch.bfloat16):
                    found = self.network.log_probs(*self._there(together[place])).float()
                (-found.mean()).backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
                optimizer.step()
                total -= float(found.detach().sum())
            loss = -float(self.scores(held_out).sum()) / held_out_positions
            tell(
                f"epoch {epoch + 1}: perplexity {math.exp(total / positions):.1f}, held out "
                f"{math.exp(loss):.1f}, {time.process_time() - began:.0f} processor seconds"
            )
            if loss < best:
                best = loss
                best_state = {
                    name: value.clone() for name, value in self.network.state_dict().items()
                }
            kept = {
                "network": self.network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "done": epoch + 1,
                "best": best,
                "best_state": best_state,
            }
            torch.save(kept, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
        self.network.load_state_dict(best_state)


def new_model(
    kind: str, counts: Ids, sizes: Sizes, *, longest: int, seed: int, device: str
) -> NetworkModel:
    """Return a network that has learned nothing yet.

    Args:
        kind: One of `KINDS`.
        counts: How often each word of the vocabulary stands in the text.
        sizes: Its sizes.
        longest: Words of the longest sentence of any text.
        seed: Seed of its first numbers.
        device: Where it works.
    """
    torch.manual_seed(seed)
    ranks = np.empty(len(counts) + 1, np.int64)
    ends = int(counts.max(initial=0)) + 1  # there are more ends than commas, hardly more than words
    ranks[np.lexsort((np.arange(len(counts) + 1), -np.append(counts, ends)))] = np.arange(
        len(ranks)
    )
    network = Network(kind, len(ranks), sizes, longest + 1)
    return NetworkModel(network.to(device), ranks, device)
