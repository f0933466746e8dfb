"""How a grammar with latent annotations is trained: split, learn, merge, smooth, and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelm.characters import visible
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import UsageError, spelled
from treelm.grammar.binary_trees import BinaryTrees, build_binary_trees
from treelm.grammar.estimate_lexicon import berkeley_lexicon, closed_lexicon, lexicon_names
from treelm.grammar.grammar import FloatArray
from treelm.grammar.held_out import HeldOutTrees, LexiconMaker
from treelm.grammar.latent_trees import LatentTrees, grammar_of
from treelm.grammar.lexicon import Lexicon, TaggedWords
from treelm.grammar.rare_words import RareWords
from treelm.grammar.split_merge import (
    Iteration,
    LatentWeights,
    SplitMerge,
    SplitMergeOptions,
    unsplit_weights,
)
from treelm.models.interface.trained_model import corpus_record
from treelm.models.pcfg.train import encoded_words
from treelm.models.pcfg_la.checkpoint import Checkpoint, training_key
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.run import QUIET, Event, Run
from treelm.transforms.copies import with_copies


def train_pcfg_la(
    corpus: TreeCorpus,
    config: PcfgLaConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TreeCorpus | None = None,
    dictionary: TreeCorpus | None = None,
    run: Run = QUIET,
) -> PcfgLaModel:
    """Return a grammar with latent annotations of a treebank.

    Args:
        corpus: The trees.
        config: Options.
        vocabulary: Vocabulary file for the closed lexicon. Default: all words of the trees.
        held_out: Trees on which the best grammar of each phase is chosen. Default: the last one.
        dictionary: Trees of a parser, from which words that the trees of the training do not know,
            or hardly, get their tags. Default: unknown words have what their shapes say.
        run: How the training is run; its checkpoint keeps the grammar after each cycle.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees, ``E_IMPOSSIBLE_TREES`` or ``E_NAN`` if
            training goes wrong.
        UsageError: ``E_CHECKPOINT`` if the checkpoint is that of another training.
    """
    if dictionary is not None and config.lexicon == "closed":
        raise UsageError(
            "the words of a closed lexicon sum to one, so it takes no dictionary; the berkeley "
            "lexicon does."
        )
    shown = with_copies(corpus, config.copies, config.copy_share)
    trees, words = _words(_binary_trees(shown, "trees", run), shown, config, vocabulary)
    judge = None
    if held_out is not None:
        unseen = _binary_trees(held_out, "held-out trees", run)
        judge = HeldOutTrees(unseen, trees, words.vocabulary, words.lexicon, threads=run.threads)
        if judge.left_out:
            run.note(
                f"{judge.left_out} of {len(unseen)} held-out trees have rules or tagged words that "
                "the training trees do not allow; they are left out."
            )
    tied = config.tie_rare_words and config.lexicon == "berkeley"
    rare = RareWords(trees.tagged, config.rare) if tied else None
    training = SplitMerge(trees, config.training(), run.threads, judge, rare, run.executor)
    state, done = unsplit_weights(trees), 0
    key = training_key(trees, config, None if held_out is None else held_out.fingerprint.sha256)
    checkpoint = None if run.checkpoint is None else Checkpoint(run.checkpoint)
    if checkpoint is not None and run.resume:
        found = checkpoint.load(trees, config.cycles, key)
        if found is not None:
            state, done = found
            run.note(f"resuming after cycle {done}.")
        else:
            run.note(
                f"{visible(str(checkpoint.folder))}: there is no checkpoint to resume from, so the "
                "training begins with the first cycle. One that has finished leaves a checkpoint "
                "only in a folder that was asked for: "
                f"{spelled(command_line='--work FOLDER', python='checkpoint=FOLDER')}."
            )
    elif checkpoint is not None:
        checkpoint.remove()
    for cycle in range(done + 1, config.cycles + 1):
        state = _run_cycle(training, state, cycle, run)
        if checkpoint is not None:
            checkpoint.save(state, cycle, key)
    model = _model(corpus, config, training, state, words)
    if dictionary is None:
        return model
    return model.with_dictionary(dictionary, config.dictionary_options())


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a training, and the lexicon that counts of them give."""

    vocabulary: Vocabulary
    lexicon: LexiconMaker


def _words(
    trees: BinaryTrees, corpus: TreeCorpus, config: PcfgLaConfig, vocabulary: Vocabulary | None
) -> tuple[LatentTrees, _Words]:
    """Return the trees with the words that they are trained with."""
    options = config.lexicon_options(corpus.options.profile)
    if config.lexicon == "berkeley":
        if vocabulary is not None:
            raise UsageError(
                "the berkeley lexicon has its own vocabulary; give one with the closed one only."
            )
        latent = LatentTrees(trees)
        names = lexicon_names(latent.tagged, trees.phrasal, len(trees.symbols), options)

        def berkeley(counts: FloatArray, state: LatentWeights) -> Lexicon:
            return berkeley_lexicon(
                latent.tagged,
                counts,
                trees.phrasal,
                state.substates,
                options,
                names=names,
                groups=state.branches if config.smoothing_scope == "branch" else None,
            )

        return latent, _Words(names[0], berkeley)
    known, text = encoded_words(corpus, vocabulary)
    starts = text.starts.astype(np.int64)
    kept = [text.ids[starts[tree] : starts[tree + 1]] for tree in trees.tree_source.tolist()]
    ids = np.concatenate([*kept, np.zeros(0, dtype=np.uint32)])
    tagged = TaggedWords.of(trees, words=known.symbols, leaf_words=ids) if len(trees) else None
    latent = LatentTrees(trees, tagged)

    def closed(counts: FloatArray, state: LatentWeights) -> Lexicon:
        return closed_lexicon(
            latent.tagged,
            counts,
            trees.phrasal,
            state.substates,
            vocabulary=known,
            options=options,
        )

    return latent, _Words(known, closed)


def _binary_trees(corpus: TreeCorpus, what: str, run: Run) -> BinaryTrees:
    trees = build_binary_trees(corpus.batches())
    if trees.cycles or trees.bad_roots:
        run.note(
            f"{what}: {trees.cycles} with a unary chain that repeats a label and "
            f"{trees.bad_roots} without ROOT at the top are left out."
        )
    return trees


def _run_cycle(training: SplitMerge, state: LatentWeights, cycle: int, run: Run) -> LatentWeights:
    options = training.options
    total = options.split_iterations + options.merge_iterations + options.smooth_iterations
    steps = training.run_cycle(state, cycle)
    impossible = 0
    with run.progress.step(f"cycle {cycle}", total=total, unit="iterations") as step:
        while True:
            try:
                done = next(steps)
            except StopIteration as end:
                after: LatentWeights = end.value
                break
            impossible = max(impossible, done.impossible)
            note = f"cycle {cycle}, {done.phase}: log likelihood {done.log_likelihood:.1f}"
            step.advance(1, note=note)
            run.event(_event(done, options))
    if impossible:
        run.note(f"cycle {cycle}: up to {impossible} trees had a probability of zero.")
    return after


def _event(done: Iteration, options: SplitMergeOptions) -> Event:
    """Return what is told of an iteration; only the last one of a phase matters to all."""
    last = {
        "split": options.split_iterations,
        "merge": options.merge_iterations,
        "smooth": options.smooth_iterations,
    }
    held_out = "" if done.held_out is None else f", held out {done.held_out:.1f}"
    text = (
        f"cycle {done.cycle}, {done.phase} {done.number}: log likelihood "
        f"{done.log_likelihood:.1f}{held_out}, {done.substates} subcategories"
    )
    return Event(done, text, is_minor=done.number != last[done.phase])


def _model(
    corpus: TreeCorpus,
    config: PcfgLaConfig,
    training: SplitMerge,
    state: LatentWeights,
    words: _Words,
) -> PcfgLaModel:
    trees, rules, tagged = training.trees.trees, training.trees.rules, training.trees.tagged
    counts = training.expect(state).counts
    lexicon = words.lexicon(rules.split_weights(state.substates, counts)[2].copy(), state)
    grammar = grammar_of(trees, rules, state.substates, state.weights, state.split_tree)
    grammar.check_normalized()
    unigrams = np.zeros(len(words.vocabulary) + 1, dtype=np.uint64)
    ids = words.vocabulary.ids_of(tagged.words)[tagged.pairs[:, 0]]
    np.add.at(unigrams, ids, tagged.tokens.astype(np.uint64))
    unigrams[-1] = len(trees)
    return PcfgLaModel(grammar, lexicon, unigrams, config, [corpus_record(corpus)])
