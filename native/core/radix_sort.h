// Sorts records by the leading bits of their keys: most significant digits first, so that most of the
// work happens inside the cache, and small pieces by comparison. Equal keys keep no particular order
// unless the record's own comparison tells them apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packed_keys.h"
#include "thread_pool.h"

namespace treelm {

namespace radix {

inline constexpr unsigned digit_bits = 8;
inline constexpr std::size_t small = 256;

template <class Record>
unsigned digit(const Record& record, unsigned bit) {
  const std::size_t word = bit / 64;
  const unsigned shift = bit % 64;
  std::uint64_t piece = record.key.w[word] << shift;
  if (shift > 64 - digit_bits && word + 1 < record.key.w.size()) piece |= record.key.w[word + 1] >> (64 - shift);
  return static_cast<unsigned>(piece >> (64 - digit_bits));
}

template <class Record>
struct Piece {
  Record* from;
  Record* to;
  std::size_t size;
  unsigned bit;
  bool in_place;  // the result is wanted where `from` is
};

// One step: splits a piece by its next digit that is not constant, and hands on the parts.
template <class Record, class Next>
void split(Piece<Record> piece, unsigned bits, const Next& next) {
  for (;; piece.bit += digit_bits) {
    if (piece.size <= small || piece.bit >= bits) {
      if (piece.bit < bits || Record::has_ties) std::sort(piece.from, piece.from + piece.size);
      if (!piece.in_place) std::copy(piece.from, piece.from + piece.size, piece.to);
      return;
    }
    std::array<std::size_t, (std::size_t{1} << digit_bits) + 1> start{};
    for (std::size_t i = 0; i < piece.size; ++i) ++start[digit(piece.from[i], piece.bit) + 1];
    if (start[digit(piece.from[0], piece.bit) + 1] == piece.size) continue;
    for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    auto place = start;
    for (std::size_t i = 0; i < piece.size; ++i) {
      const Record& record = piece.from[i];
      piece.to[place[digit(record, piece.bit)]++] = record;
    }
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
      const std::size_t size = start[i + 1] - start[i];
      if (size != 0)
        next(Piece<Record>{piece.to + start[i], piece.from + start[i], size, piece.bit + digit_bits, !piece.in_place});
    }
    return;
  }
}

template <class Record>
void sort_piece(Piece<Record> piece, unsigned bits) {
  split(piece, bits, [bits](const Piece<Record>& part) { sort_piece(part, bits); });
}

template <class Record>
void cut_pieces(Piece<Record> piece, unsigned bits, std::size_t enough, std::vector<Piece<Record>>& out) {
  split(piece, bits, [&](const Piece<Record>& part) {
    if (part.size <= enough)
      out.push_back(part);
    else
      cut_pieces(part, bits, enough, out);
  });
}

}  // namespace radix

// Sorts by the first `bits` bits of `record.key`; `scratch` is as long as `records`. A Record has a
// `key`, a static `has_ties` that says whether equal keys must be put in order by operator<, and that.
template <class Record>
void radix_sort(std::vector<Record>& records, std::vector<Record>& scratch, unsigned bits, ThreadPool& pool) {
  const radix::Piece<Record> whole{records.data(), scratch.data(), records.size(), 0, true};
  if (pool.size() <= 1 || records.size() < 100000) {
    radix::sort_piece(whole, bits);
    return;
  }
  std::vector<radix::Piece<Record>> pieces;
  radix::cut_pieces(whole, bits, records.size() / (8 * pool.size()), pieces);
  std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.size > b.size; });
  pool.map(pieces.size(), [&](std::size_t i, std::size_t) { radix::sort_piece(pieces[i], bits); });
}

}  // namespace treelm
