#include "chart/tree_list_text.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/starts.h"
#include "base/symbols.h"

namespace treelm {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::argument, std::string("lists of trees: ") + what);
}

void append_score(std::string& out, double score) {
  if (!std::isfinite(score)) {
    out.append(std::isnan(score) ? "nan" : score < 0 ? "-inf" : "inf");
    return;
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), score);
  out.append(text, end.ptr);
}

}  // namespace

void check_tree_lists(const TreeLists& lists, std::size_t labels, std::size_t words) {
  require(lists.label.size() == lists.size.size(), "node arrays differ in length");
  check_starts(lists.tree_start, lists.label.size(), "lists of trees: the starts of trees do not fit the nodes");
  check_starts(lists.list_start, lists.score.size(), "lists of trees: the starts of lists do not fit the trees");
  check_starts(lists.word_start, words, "lists of trees: the starts of sentences do not fit the words");
  require(lists.tree_start.size() == lists.score.size() + 1, "every tree needs one score");
  require(lists.word_start.size() == lists.list_start.size(), "every sentence needs one list");
  for (const std::uint32_t label : lists.label) require(label < labels, "a label is out of range");
  std::vector<std::uint64_t> ends;
  for (std::size_t sentence = 0; sentence + 1 < lists.list_start.size(); ++sentence) {
    const std::uint64_t length = lists.word_start[sentence + 1] - lists.word_start[sentence];
    for (std::uint64_t tree = lists.list_start[sentence]; tree < lists.list_start[sentence + 1]; ++tree) {
      const std::uint64_t first = lists.tree_start[tree], last = lists.tree_start[tree + 1];
      require(first < last && lists.size[first] == last - first, "the root of a tree does not span it");
      ends.assign(1, last);
      std::uint64_t leaves = 0;
      for (std::uint64_t node = first; node < last; ++node) {
        while (ends.back() == node) ends.pop_back();
        require(lists.size[node] >= 1 && lists.size[node] <= ends.back() - node, "a subtree reaches beyond its parent");
        if (lists.size[node] == 1) {
          ++leaves;
        } else {
          ends.push_back(node + lists.size[node]);
        }
      }
      require(leaves == length, "a tree and its sentence differ in length");
    }
  }
}

std::string write_tree_lists(const TreeLists& lists, bool scores) {
  std::string out;
  out.reserve(lists.label.size() * 9);
  std::vector<std::uint64_t> ends;  // of the open phrases
  for (std::size_t sentence = 0; sentence + 1 < lists.list_start.size(); ++sentence) {
    for (std::uint64_t tree = lists.list_start[sentence]; tree < lists.list_start[sentence + 1]; ++tree) {
      if (scores) {
        append_score(out, lists.score[tree]);
        out.push_back('\t');
      }
      std::uint64_t word = lists.word_start[sentence];
      const std::uint64_t first = lists.tree_start[tree], last = lists.tree_start[tree + 1];
      ends.clear();
      for (std::uint64_t node = first; node < last; ++node) {
        if (node > first) out.push_back(' ');
        out.push_back('(');
        out.append(lists.labels[lists.label[node]]);
        if (lists.size[node] > 1) {
          ends.push_back(node + lists.size[node]);
          continue;
        }
        out.push_back(' ');
        out.append(lists.words[word++]);
        out.push_back(')');
        for (; !ends.empty() && ends.back() == node + 1; ends.pop_back()) out.push_back(')');
      }
      out.push_back('\n');
    }
    if (scores || lists.list_start[sentence] == lists.list_start[sentence + 1]) out.push_back('\n');
  }
  return out;
}

}  // namespace treelm
