// Grammars and lexicons as Python holds them: handles, shared by parsers and never changed.
#pragma once

#include <memory>

#include "chart/grammar.h"
#include "chart/lexicon.h"

namespace treelm::bindings {

template <class Real>
struct GrammarHandle {
  std::shared_ptr<ChartGrammar<Real>> grammar;
};

struct LexiconHandle {
  std::shared_ptr<ChartLexicon> lexicon;
};

}  // namespace treelm::bindings
