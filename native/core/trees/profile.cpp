#include "trees/profile.h"

#include <algorithm>

#include "base/error.h"

namespace treelm {

namespace {
constexpr std::uint8_t unlisted = 255;
constexpr std::size_t max_labels = 60000;
}  // namespace

Profile::Profile(const ProfileData& data)
    : closed_prefixes_(data.closed_prefixes),
      separators_(data.separators),
      compounds_(data.compounds),
      temporal_function_(data.temporal_function),
      punctuation_by_word_(data.punctuation_by_word) {
  const auto longer = [](const std::string& one, const std::string& other) {
    return one.size() != other.size() ? one.size() > other.size() : one < other;
  };
  std::sort(compounds_.begin(), compounds_.end(), longer);
  for (const auto& [label, category] : data.renamed) {
    if (label.size() > 1 && label.ends_with('*')) {
      renamed_by_beginning_.emplace_back(label.substr(0, label.size() - 1), category);
    } else {
      renamed_whole_.emplace_back(label, category);
    }
  }
  std::sort(renamed_whole_.begin(), renamed_whole_.end());
  std::sort(renamed_by_beginning_.begin(), renamed_by_beginning_.end(),
            [&](const auto& one, const auto& other) { return longer(one.first, other.first); });
  check_categories(data);

  root_ = atoms_.intern("ROOT");
  const char* const classes[5] = {"YR", "MX", "DC", "NM", "AL"};
  for (int i = 0; i < 5; ++i) number_classes_[i] = atoms_.intern(classes[i]);

  add(data.root_labels, is_root_label);
  add(data.empty_tags, is_empty_tag);
  add(data.drop_tags, is_dropped);
  add(data.punctuation_tags, is_punctuation_tag);
  add(data.coordinators, is_coordinator);
  add(data.coordination_skips, is_coordination_skip);
  add(data.closed_tags, is_closed_tag);
  add(data.temporal_phrases, is_temporal_phrase);
  add(data.noun_phrases, is_noun_phrase);
  add(data.noun_phrase_separators, is_separator);
  add(data.apposition_marks, is_apposition_mark);
  add(data.number_tags, is_number_tag);
  add(data.verb_phrases, is_verb_phrase);
  add(data.gapped, may_be_gapped);
  add(data.parent_annotated, takes_parent);
  for (const auto& [label, name] : data.flatten) {
    add({label}, is_flattened);
    add({name}, 0);
  }
  for (const auto& [source, target] : data.temporal_tags) {
    add({source}, is_temporal_source);
    add({target}, 0);
  }
  for (const auto& [parent, child] : data.clause_flattening) {
    add({parent}, splices_children);
    add({child}, 0);
    clause_flattening_.emplace_back(atoms_.find(parent), atoms_.find(child));
  }
  for (const std::string& word : data.closed_words) closed_words_.intern(word);
  for (const std::string& word : data.bracket_words) bracket_words_.intern(word);
  for (const HeadRow& row : data.head_rows) {
    add({row.parent}, 0);
    for (const HeadStep& step : row.steps) add(step.labels, 0);
  }
  for (const auto& [tag, word, spelling] : data.spellings) {
    add({tag}, has_spellings);
    spellings_.emplace_back(atoms_.find(tag), word, spelling);
  }
  if (atoms_.size() > max_labels) throw Error(ErrorCode::argument, "a profile names more than 60000 labels");

  canonical_.resize(atoms_.size());
  for (std::uint32_t i = 0; i < atoms_.size(); ++i) canonical_[i] = i;
  temporal_.assign(atoms_.size(), none);
  below_root_.assign(atoms_.size(), none);
  for (const auto& [source, target] : data.temporal_tags) {
    temporal_[atoms_.find(source)] = atoms_.find(target);
    canonical_[atoms_.find(target)] = atoms_.find(source);
  }
  for (const auto& [label, name] : data.flatten) below_root_[atoms_.find(label)] = atoms_.find(name);
  compile_rows(data);
  flags_.resize(atoms_.size(), 0);
  for (std::uint32_t i = 0; i < atoms_.size(); ++i) flags_[i] |= flags_of_text(atoms_[i]);
}

// What was read, written and read again must be the same tree.
void Profile::check_categories(const ProfileData& data) const {
  for (const std::string& compound : data.compounds)
    if (category(compound) != compound)
      throw Error(ErrorCode::argument, "reading.compounds: " + compound + " is renamed " +
                                           std::string(category(compound)) + ": name it in one of the two places");
  for (const auto& [label, renamed] : data.renamed)
    if (category(renamed) != renamed)
      throw Error(ErrorCode::argument, "reading.rename: " + label + " becomes " + renamed + ", which is read as " +
                                           std::string(category(renamed)));
}

std::size_t Profile::cut_position(std::string_view label) const {
  if (label.starts_with('-')) return label.size();
  for (const std::string& compound : compounds_) {
    if (!label.starts_with(compound)) continue;
    if (label.size() == compound.size() || separators_.find(label[compound.size()]) != std::string::npos)
      return compound.size();
  }
  const std::size_t at = label.find_first_of(separators_, 1);
  return at == std::string_view::npos ? label.size() : at;
}

bool Profile::has_function(std::string_view label, std::string_view function) const {
  if (function.empty()) return false;
  std::size_t at = cut_position(label);
  while (at < label.size()) {
    const std::size_t end = std::min(label.find_first_of(separators_, at + 1), label.size());
    if (label.substr(at + 1, end - at - 1) == function) return true;
    at = end;
  }
  return false;
}

std::string_view Profile::category(std::string_view label) const {
  const std::string_view cut = label.substr(0, cut_position(label));
  const auto whole = std::lower_bound(renamed_whole_.begin(), renamed_whole_.end(), cut,
                                      [](const auto& entry, std::string_view text) { return entry.first < text; });
  if (whole != renamed_whole_.end() && whole->first == cut) return whole->second;
  for (const auto& [beginning, renamed] : renamed_by_beginning_)
    if (cut.starts_with(beginning)) return renamed;
  return cut;
}

void Profile::add(const std::vector<std::string>& labels, std::uint32_t flag) {
  for (const std::string& label : labels) {
    const std::uint32_t id = atoms_.intern(label);
    if (flags_.size() <= id) flags_.resize(id + 1, 0);
    flags_[id] |= flag;
  }
}

void Profile::compile_rows(const ProfileData& data) {
  row_of_.assign(atoms_.size(), none);
  unknown_.default_right = data.default_right;
  unknown_.listed.assign(atoms_.size(), false);
  for (const HeadRow& source : data.head_rows) {
    Row row;
    row.default_right = source.default_right;
    row.listed.assign(atoms_.size(), false);
    for (const HeadStep& step : source.steps) {
      if (step.labels.size() >= unlisted) throw Error(ErrorCode::argument, "a head rule lists more than 254 labels");
      Step compiled{step.kind, step.from_right, std::vector<std::uint8_t>(atoms_.size(), unlisted)};
      for (std::size_t i = 0; i < step.labels.size(); ++i) {
        const std::uint32_t id = atoms_.find(step.labels[i]);
        if (compiled.rank[id] == unlisted) compiled.rank[id] = static_cast<std::uint8_t>(i);
        if (step.kind != HeadStep::Kind::last) row.listed[id] = true;
      }
      row.steps.push_back(std::move(compiled));
    }
    row_of_[atoms_.find(source.parent)] = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(std::move(row));
  }
}

std::uint32_t Profile::flags_of_text(std::string_view label) const {
  std::uint32_t result = 0;
  for (const std::string& prefix : closed_prefixes_)
    if (label.starts_with(prefix)) result |= has_closed_prefix;
  if (label.find_first_of("@+^|\\") != std::string_view::npos) result |= has_reserved_char;
  return result;
}

std::uint32_t Profile::flags(std::string_view label) const {
  const std::uint32_t id = atoms_.find(label);
  return id == none ? flags_of_text(label) : flags_[id];
}

std::string_view Profile::spelling(std::uint32_t base, std::string_view word) const {
  // A handful of entries: quotes.
  for (const auto& [tag, written, spelling] : spellings_) {
    if (tag == base && written == word) return spelling;
  }
  return word;
}

std::uint32_t Profile::temporal_tag(std::uint32_t base) const {
  return base < temporal_.size() ? temporal_[base] : none;
}

bool Profile::splices(std::uint32_t parent, std::uint32_t child) const {
  return std::find(clause_flattening_.begin(), clause_flattening_.end(), std::pair(parent, child)) !=
         clause_flattening_.end();
}

std::uint32_t Profile::name_below_root(std::uint32_t base) const {
  return base < below_root_.size() ? below_root_[base] : none;
}

std::uint32_t Profile::match(const Row& row, std::span<const HeadCandidate> children) const {
  const auto count = static_cast<std::uint32_t>(children.size());
  for (const Step& step : row.steps) {
    const auto rank = [&](std::uint32_t i) {
      const std::uint32_t base = canonical(children[i].base);
      return base < step.rank.size() ? step.rank[base] : unlisted;
    };
    if (step.kind == HeadStep::Kind::last) {
      if (rank(count - 1) != unlisted) return count - 1;
      continue;
    }
    std::uint32_t best = none;
    std::uint8_t best_rank = unlisted;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t child = step.from_right ? count - 1 - i : i;
      const std::uint8_t here = rank(child);
      if (here < best_rank) {
        best = child;
        best_rank = here;
        if (step.kind == HeadStep::Kind::any) break;
      }
    }
    if (best != none) return best;
  }
  return none;
}

// A head behind a conjunction moves to the conjunct before it, once.
std::uint32_t Profile::repair(const Row& row, std::uint32_t head, std::span<const HeadCandidate> children) const {
  if (head < 2 || !has_flag(children[head - 1].base, is_coordinator)) return head;
  for (std::uint32_t at = head - 1; at-- > 0;) {
    const std::uint32_t base = canonical(children[at].base);
    if (children[at].punctuation || has_flag(base, is_coordination_skip)) continue;
    const bool same = base == canonical(children[head].base);
    return same || (base < row.listed.size() && row.listed[base]) ? at : head;
  }
  return head;
}

std::uint32_t Profile::head_child(std::uint32_t parent, std::span<const HeadCandidate> children) const {
  const auto count = static_cast<std::uint32_t>(children.size());
  if (count <= 1) return 0;
  const std::uint32_t which = parent < row_of_.size() ? row_of_[parent] : none;
  const Row& row = which == none ? unknown_ : rows_[which];
  const std::uint32_t found = match(row, children);
  if (found != none) return repair(row, found, children);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t child = row.default_right ? count - 1 - i : i;
    if (!children[child].punctuation) return child;
  }
  return row.default_right ? count - 1 : 0;
}

}  // namespace treelm
