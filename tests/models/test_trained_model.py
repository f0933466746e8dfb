"""What trained models share: their description, pickles, and copies with something changed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.models.composite_models import sample_composite
from tests.models.hhmm_cases import sample_model
from tests.models.ngram_models import small_ngram
from tests.models.plsa_models import sample_topics

from treelm.models.composite.model import CompositeModel
from treelm.models.hhmm.model import HhmmModel
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.plsa.model import PlsaModel

SENTENCE = "The old ferry left the harbour ."

MODELS = {
    "ngram": lambda: small_ngram(order=3),
    "plsa": sample_topics,
    "composite": lambda: sample_composite(
        order=2, topics=6, keep_topics=3, test_topics=2, eta=0.2, iterations=1
    ),
    "hhmm": lambda: sample_model(depth=2, beam_width=20),
}


@pytest.mark.parametrize("name", MODELS)
def test_pickles_of_used_models_are_the_same_model(name: str) -> None:
    model: Any = MODELS[name]()
    assert isinstance(model, IncrementalModel)
    expected = model.score(SENTENCE)  # kernel objects are there now, and are not pickled
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint
    assert again.score(SENTENCE) == expected
    assert again.description() == model.description()
    assert again.vocabulary.fingerprint == model.vocabulary.fingerprint


@pytest.mark.parametrize("name", MODELS)
def test_descriptions_say_what_the_model_says(name: str) -> None:
    model: Any = MODELS[name]()
    found = model.description()
    assert (found.system, found.exactness) == (model.system, model.info.exactness)
    assert found.vocabulary == model.vocabulary.fingerprint
    assert found.config == model.config.model_dump(mode="json")
    assert tuple(found.corpora) == model.corpora
    assert found.seed == getattr(model.config, "seed", None)
    assert [*found.transforms] == (
        model.config.pipeline().to_config() if hasattr(model.config, "pipeline") else []
    )


def test_other_searches_keep_everything_else() -> None:
    hhmm = MODELS["hhmm"]()
    assert isinstance(hhmm, HhmmModel)
    narrow = hhmm.with_search(beam_width=3)
    assert narrow.config.beam_width == 3
    assert narrow.tables is hhmm.tables
    assert narrow.fingerprint == hhmm.fingerprint
    composite = MODELS["composite"]()
    assert isinstance(composite, CompositeModel)
    other = composite.with_search(stack_size=2)
    assert (other.config.stack_size, other.corpora) == (2, composite.corpora)
    assert other.prior is composite.prior
    plsa = MODELS["plsa"]()
    assert isinstance(plsa, PlsaModel)
    still = plsa.with_options(adapt=False)
    assert not still.config.adapt
    assert still.predictor is plsa.predictor
