// Handles of the HHMM that other bindings take.
#pragma once

#include <memory>
#include <string>

#include "hhmm/beam.h"
#include "hhmm/grammar.h"

namespace treelm::bindings {

struct GrammarHandle {
  std::shared_ptr<const HhmmGrammar> grammar;
};

// The key of that name; `best` is the number of stacks that "topk" looks at.
inline BeamKey beam_key_of(const std::string& kind, std::uint32_t best) {
  return {kind == "exact"       ? BeamKey::Kind::exact
          : kind == "quantised" ? BeamKey::Kind::quantised
          : kind == "topk"      ? BeamKey::Kind::best
                                : BeamKey::Kind::ignore,
          best};
}

}  // namespace treelm::bindings
