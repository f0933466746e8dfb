"""`treelm evaluate wer`."""

from __future__ import annotations

from treelm.cli.options import AsJson, CommonOptions, InputFile, Seed
from treelm.cli.terminal import write_record
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import read_lines
from treelm.corpus.nbest import numbered_lists
from treelm.errors import CorpusFormatError, UsageError
from treelm.interop.nbest_formats import NBestFormat, in_order_of, read_lists, read_utterances


def wer(
    reference: InputFile,
    hypotheses: InputFile,
    /,
    *,
    named: bool = False,
    n_best: NBestFormat | None = None,
    seed: Seed = 0,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure the word error rate: words replaced, put in or left out per hundred words.

    Both files have a sentence on each line, words separated by spaces; nothing is changed before
    words are compared. With n-best lists their first hypotheses are measured, and the oracle: those
    with the fewest errors.

    Args:
        reference: What was said.
        hypotheses: What was recognised.
        named: Lines begin with the name of the utterance, as in Kaldi, in any order.
        n_best: The second file contains n-best lists in this format. Those of Kaldi have references
            whose lines begin with the name of the utterance.
        seed: Seed of the interval, which is a bootstrap over sentences.
    """
    del common
    from treelm.tasks.evaluate.word_error_rate import list_error_rate, word_error_rate

    if named and n_best is not None:
        raise UsageError("--named cannot be combined with --n-best: Kaldi's lists have names.")
    if n_best == "kaldi":
        right = read_utterances(reference)
        lists = in_order_of(read_lists(hypotheses, n_best), list(right), reference)
        numbered = ((int(each.id), each) for each in lists)
        found = list_error_rate(list(right.values()), numbered, seed=seed)
    elif n_best is not None:
        lines = list(read_lines(reference, Wanted.TEXT))
        given = numbered_lists(read_lists(hypotheses, n_best), len(lines))
        found = list_error_rate(lines, given, seed=seed)
    elif named:
        right, said = read_utterances(reference), read_utterances(hypotheses)
        for name in said:
            if name not in right:
                raise CorpusFormatError(
                    f'{hypotheses}: utterance "{name}" has no reference in {reference}.',
                    code="E_LENGTH_MISMATCH",
                )
        texts = [said.get(name, "") for name in right]
        found = word_error_rate(list(right.values()), texts, seed=seed)
    else:
        files = (list(read_lines(each, Wanted.TEXT)) for each in (reference, hypotheses))
        found = word_error_rate(*files, seed=seed)
    write_record(found.to_record(), as_json=json)
