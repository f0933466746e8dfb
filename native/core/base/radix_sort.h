// Sorts records in place by the leading bits of their keys: most significant digits first, so that
// most of the work happens inside the cache, and small pieces by comparison. Records with equal keys
// end in no particular order unless their own comparison tells them apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/packed_keys.h"
#include "base/thread_pool.h"

namespace treelm {

namespace radix {

inline constexpr unsigned digit_bits = 8;
inline constexpr std::size_t digits = std::size_t{1} << digit_bits;
inline constexpr std::size_t small = 128;

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
  std::span<Record> records;
  unsigned bit;  // those before it are the same in all records
};

// One step: splits a piece by its next digit that is not constant, and hands on the parts.
template <class Record, class Next>
void split(Piece<Record> piece, unsigned bits, const Next& next) {
  const std::span<Record> records = piece.records;
  for (;; piece.bit += digit_bits) {
    if (records.size() <= small || piece.bit >= bits) {
      if (piece.bit < bits || Record::has_ties) std::sort(records.begin(), records.end());
      return;
    }
    std::array<std::size_t, digits + 1> start{};
    for (const Record& record : records) ++start[digit(record, piece.bit) + 1];
    if (start[digit(records[0], piece.bit) + 1] == records.size()) continue;
    for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
    // Every record goes to the next free place of its digit; what it finds there moves on.
    std::array<std::size_t, digits> free;
    std::copy_n(start.begin(), digits, free.begin());
    for (std::size_t d = 0; d < digits; ++d)
      while (free[d] < start[d + 1]) {
        Record record = records[free[d]];
        for (unsigned to = digit(record, piece.bit); to != d; to = digit(record, piece.bit))
          std::swap(record, records[free[to]++]);
        records[free[d]++] = record;
      }
    for (std::size_t d = 0; d < digits; ++d)
      if (const std::size_t size = start[d + 1] - start[d]; size > 1)
        next(Piece<Record>{records.subspan(start[d], size), piece.bit + digit_bits});
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
    if (part.records.size() <= enough)
      out.push_back(part);
    else
      cut_pieces(part, bits, enough, out);
  });
}

}  // namespace radix

// Sorts by the first `bits` bits of `record.key`. A Record has a `key`, operator<, and a static
// `has_ties` that says whether operator< must put records with equal keys in order.
template <class Record>
void radix_sort(std::span<Record> records, unsigned bits, ThreadPool& pool) {
  const radix::Piece<Record> whole{records, 0};
  if (pool.size() <= 1 || records.size() < 100000) {
    radix::sort_piece(whole, bits);
    return;
  }
  std::vector<radix::Piece<Record>> pieces;
  radix::cut_pieces(whole, bits, records.size() / (8 * pool.size()), pieces);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.records.size() > b.records.size(); });
  pool.map(pieces.size(), [&](std::size_t i, std::size_t) { radix::sort_piece(pieces[i], bits); });
}

}  // namespace treelm
