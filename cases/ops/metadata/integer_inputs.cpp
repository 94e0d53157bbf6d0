// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/metadata/integer_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <utility>

#include "cases/judge/right_values.h"
#include "cases/tables/row.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostInt = std::numeric_limits<std::int32_t>::max();

enum IntegerSalt : std::uint64_t {
  kBlocks = 31,
  kQueries,
  kSequences,
  kTokens,
  kSlots,
  kIntegerLengths
};

std::int32_t dead_integer(DeadRows how) {
  switch (how) {
    case DeadRows::nan: return -1;
    case DeadRows::infinity: return std::numeric_limits<std::int32_t>::max();
    case DeadRows::huge: return std::numeric_limits<std::int32_t>::min();
    default: return 0;
  }
}

// Number of blocks from which those of a table are drawn: at least four times as many.
std::uint64_t pool_of(const BlockTableShape& shape) {
  return std::bit_ceil(4 * static_cast<std::uint64_t>(shape.requests * shape.row_stride()));
}

// Block at a place of the table. All places have different blocks.
std::int64_t block_of(const BlockTableShape& shape, const Step& step, std::int64_t place) {
  if (step.fill == Fill::exact) return place;
  const std::uint64_t pool = pool_of(shape);
  std::uint64_t seed = mix(step.seed, kBlocks);
  if (shape.tensor != "block_table") seed = mix(seed, seed_of(shape.tensor));
  const std::uint64_t bits = random_bits(seed, 0);
  const std::uint64_t factor = (bits | 1) % pool, turn = bits >> 32;
  const auto block =
      static_cast<std::int64_t>((static_cast<std::uint64_t>(place) * factor + turn) % pool);
  const std::int64_t highest = (kMostInt + 1) / shape.block_size - 1;
  return step.fill == Fill::real || shape.first_block > 0 ? block : highest - block;
}

std::int64_t query_len(const QueryShape& shape, const Step& step, std::int64_t request) {
  if (request >= step.live) return 0;
  if (request < shape.decodes) return shape.decode_queries;
  if (!shape.ragged || step.fill == Fill::exact) return shape.queries;
  const std::uint64_t seed = mix(step.seed, kQueries);
  if (step.fill == Fill::real) return integer(seed, request, 1, shape.queries);
  const std::int64_t edges[] = {shape.queries, 1, 0, shape.queries - 1};
  return edges[(random_bits(seed, 0) + static_cast<std::uint64_t>(request)) % 4];
}

std::int64_t seq_len(const QueryShape& shape, const Step& step, std::int64_t request,
                     std::int64_t queries) {
  if (request >= step.live) return 0;
  const std::uint64_t seed = mix(step.seed, kSequences);
  if (step.fill == Fill::exact) return std::max(queries, shape.context - request);
  if (step.fill == Fill::real) return integer(seed, request, queries, shape.context);
  if (shape.dummies && (request + step.live) % 3 == 1) return 0;
  std::vector<std::int64_t> edges = shape.edges;
  edges.insert(edges.end(), {queries, queries + 1, shape.context});
  std::erase_if(edges, [&](std::int64_t e) { return e < queries || e > shape.context; });
  return edges[(random_bits(seed, 0) + static_cast<std::uint64_t>(request)) % edges.size()];
}

}  // namespace

void fill_dead_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how) {
  if (how == DeadRows::foreign) return;
  for (std::int64_t row = begin; row < end; ++row) {
    std::fill_n(tensor.row<std::int32_t>(row), tensor.columns(), dead_integer(how));
  }
}

void fill_before(HostTensor& tensor, std::uint64_t seed) {
  const std::uint64_t stream = mix(seed, seed_of(tensor.spec().name));
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    auto* to = tensor.row<std::int32_t>(row);
    for (std::int64_t i = 0; i < tensor.columns(); ++i) {
      const std::int64_t plausible = integer(stream, row * tensor.columns() + i, 1, 1 << 20);
      const std::int64_t kinds[] = {plausible, -1, kMostInt};
      to[i] = static_cast<std::int32_t>(kinds[stream % 3]);
    }
  }
}

reference::BlockTable BlockTableShape::reference(const TensorSet& tensors) const {
  const HostTensor& blocks = tensors.at(tensor);
  const std::vector<std::int64_t>& strides = blocks.spec().strides;
  // The table of a recorded call may have fewer rows than `requests`.
  return {blocks.data<std::int32_t>(), std::min(requests, blocks.rows()), columns,
          strides.empty() ? row_stride() : strides.front(), block_size};
}

void require_int32_blocks(const BlockTableShape& shape, const std::string& where) {
  const auto first = static_cast<std::uint64_t>(shape.first_block);
  if (first + pool_of(shape) > static_cast<std::uint64_t>(kMostInt) + 1) {
    throw BadRow(where + ": block numbers do not fit into int32");
  }
}

void require_int32_slots(const BlockTableShape& shape, const std::string& where) {
  const auto most = static_cast<std::uint64_t>(kMostInt) + 1;
  if (pool_of(shape) > most / static_cast<std::uint64_t>(shape.block_size)) {
    throw BadRow(where + ": slots do not fit into int32");
  }
}

void fill_block_table(const BlockTableShape& shape, const Step& step, std::int64_t live,
                      TensorSet& tensors) {
  HostTensor& blocks = tensors.at(shape.tensor);
  for (std::int64_t request = 0; request < live; ++request) {
    const bool last = request == shape.requests - 1;
    for (std::int64_t i = 0; i < (last ? shape.columns : shape.row_stride()); ++i) {
      blocks.row<std::int32_t>(request)[i] = static_cast<std::int32_t>(
          shape.first_block + block_of(shape, step, request * shape.row_stride() + i));
    }
  }
  fill_dead_integers(blocks, live, shape.requests, step.dead_rows);
}

reference::QueryLayout QueryShape::reference(const TensorSet& tensors) const {
  return {tensors.at("query_start_loc").data<std::int32_t>(),
          tensors.at("seq_lens").data<std::int32_t>(), requests};
}

void fill_queries(const QueryShape& shape, const Step& step, TensorSet& tensors) {
  auto* starts = tensors.at("query_start_loc").data<std::int32_t>();
  auto* lengths = tensors.at("seq_lens").data<std::int32_t>();
  starts[0] = static_cast<std::int32_t>(shape.first);
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    const std::int64_t queries = query_len(shape, step, request);
    starts[request + 1] = starts[request] + static_cast<std::int32_t>(queries);
    lengths[request] = static_cast<std::int32_t>(seq_len(shape, step, request, queries));
  }
  const std::int64_t needed = shape.reference(tensors).tokens();
  if (needed > shape.tokens()) {
    throw BadRow(fmt::format("{} tokens: the requests have {}", shape.tokens(), needed));
  }
}

bool is_batch_token(const Step& step, std::int64_t token, std::int64_t live_tokens) {
  if (token >= live_tokens) return false;
  const std::uint64_t bits = random_bits(mix(step.seed, kTokens), token);
  return step.fill == Fill::exact || bits % 7 != 0;
}

void fill_slot_mapping(const Step& step, std::int64_t live_tokens, HostTensor& slot_mapping) {
  auto* slots = slot_mapping.data<std::int64_t>();
  for (std::int64_t token = 0; token < slot_mapping.rows(); ++token) {
    const bool valid = is_batch_token(step, token, live_tokens);
    // Slot 0 is as valid as any other: one token in five has it.
    const std::int64_t slot = token % 5 == 0 ? 0 : integer(mix(step.seed, kSlots), token, 1, 9999);
    slots[token] = valid ? slot : negative_index(step, token);
  }
}

std::vector<std::int64_t> live_lengths(const Step& step, std::int64_t count, std::int64_t live,
                                       std::int64_t most) {
  const std::uint64_t seed = mix(step.seed, kIntegerLengths);
  const std::int64_t edges[] = {most, 0, most - 1, std::min<std::int64_t>(1, most), most};
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), 0);
  for (std::int64_t row = 0; row < live; ++row) {
    std::int64_t length = most;
    if (step.fill == Fill::real) length = integer(seed, row, 0, most);
    if (step.fill == Fill::adversarial) {
      length = edges[(random_bits(seed, 0) + static_cast<std::uint64_t>(row)) % 5];
    }
    lengths[static_cast<std::size_t>(row)] = std::max<std::int64_t>(length, 0);
  }
  return lengths;
}

std::vector<std::int64_t> integers_of(const HostTensor& tensor) {
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(tensor.elements()));
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const auto* from = tensor.row<std::int32_t>(row);
    values.insert(values.end(), from, from + tensor.columns());
  }
  return values;
}

void store_integers(const std::vector<std::int64_t>& values, HostTensor& tensor) {
  auto* to = tensor.data<std::int32_t>();
  for (const std::int64_t value : values) *to++ = static_cast<std::int32_t>(value);
}

std::vector<std::int64_t> front_over(const std::vector<std::int64_t>& front,
                                     const HostTensor& before) {
  std::vector<std::int64_t> all = integers_of(before);
  for (std::size_t i = 0; i < front.size(); ++i) all.at(i) = front[i];
  return all;
}

namespace {

// Truth of an indptr that comes with a recorded call: its ranges are checked before they are used
// to read the list.
class RangeTruth final : public Truth {
 public:
  RangeTruth(std::int64_t entries, std::int64_t most) : entries_(entries), most_(most) {}
  TensorReport compare(const HostTensor& indptr, const RowMask&,
                       const ColumnRanges&) const override {
    const std::vector<std::int64_t> ends = integers_of(indptr);
    const auto rows = static_cast<std::int64_t>(ends.size()) - 1;
    TensorReport report{.tensor = indptr.spec().name,
                        .rows_compared = rows,
                        .elements_compared = rows + 1,
                        .rows_total = rows};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = ends[row], end = ends[row + 1];
      const bool legal = 0 <= begin && begin <= end && end - begin <= most_ && end <= entries_;
      if (!legal) report.wrong_rows.push_back(row);
    }
    if (report.wrong_rows.empty()) return report;
    const std::int64_t first = report.wrong_rows.front();
    report.wrong_elements = static_cast<std::int64_t>(report.wrong_rows.size());
    report.failures.push_back(fmt::format(
        "{}: not a range of at most {} entries of {} in {}; row {} has [{}, {})", report.tensor,
        most_, entries_, rows_of(report.wrong_rows, rows), first, ends[first], ends[first + 1]));
    return report;
  }

 private:
  std::int64_t entries_, most_;
};

// Truth of a ragged list. Its report also says which rows own the wrong entries.
class RaggedTruth final : public Truth {
 public:
  RaggedTruth(std::vector<std::int64_t> values, std::vector<std::int64_t> indptr,
              std::string_view noun)
      : values_(std::move(values)), indptr_(std::move(indptr)), noun_(noun) {}

  TensorReport compare(const HostTensor& flat, const RowMask&, const ColumnRanges&) const override {
    TensorReport report = judge_exact(flat, values_, {});
    if (report.passed()) return report;
    std::vector<std::int64_t> owners;
    std::int64_t behind = 0;
    for (const std::int64_t entry : report.wrong_rows) {
      if (entry >= indptr_.back()) {
        ++behind;
        continue;
      }
      const auto next = std::upper_bound(indptr_.begin(), indptr_.end(), entry);
      const std::int64_t owner = next - indptr_.begin() - 1;
      if (owners.empty() || owners.back() != owner) owners.push_back(owner);
    }
    if (!owners.empty()) {
      report.failures.push_back(fmt::format("{}: these entries belong to {} {} of {}",
                                            report.tensor, owners.size() == 1 ? noun_ : noun_ + "s",
                                            row_ranges(owners), indptr_.size() - 1));
    }
    if (behind > 0) {
      report.failures.push_back(fmt::format("{}: {} entries behind the last of {} are wrong",
                                            report.tensor, behind, indptr_.back()));
    }
    return report;
  }
  void put(const HostTensor& flat, const RowMask& promised, const ColumnRanges& columns,
           RightValues& right) const override {
    expect_exact(flat, values_, promised).truth->put(flat, promised, columns, right);
  }

 private:
  std::vector<std::int64_t> values_, indptr_;
  std::string noun_;
};

}  // namespace

Expectation expect_slots(const HostTensor& stored, std::vector<std::int64_t> values,
                         RowMask promised) {
  const std::vector<std::int64_t> found = integers_of(stored);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == reference::kAnyNegative) values[i] = std::min<std::int64_t>(found[i], -1);
  }
  return expect_exact(stored, std::move(values), std::move(promised));
}

Expectation expect_ranges(const HostTensor& indptr, std::int64_t entries, std::int64_t most) {
  return {std::make_shared<const HostTensor>(indptr.alias()),
          std::make_shared<const RangeTruth>(entries, most)};
}

Expectation expect_ragged(const HostTensor& flat, std::vector<std::int64_t> values,
                          std::vector<std::int64_t> indptr, std::string_view noun) {
  return {std::make_shared<const HostTensor>(flat.alias()),
          std::make_shared<const RaggedTruth>(std::move(values), std::move(indptr), noun)};
}

double row_blocks_cost(std::int64_t rows, std::int64_t columns) {
  constexpr double kThread = 9, kElement = 3;
  const auto width = static_cast<double>(std::clamp<std::int64_t>(columns, 32, 256));
  return static_cast<double>(rows) * (width * kThread + static_cast<double>(columns) * kElement);
}

double indptr_cost(std::int64_t rows) {
  constexpr double kSteps = 6, kPerRow = 10;
  const auto threads =
      static_cast<double>(std::clamp<std::int64_t>((rows + 31) / 32 * 32, 32, 256));
  return threads * (kSteps * kShuffleCost + kBarrierCost) + static_cast<double>(rows) * kPerRow;
}

}  // namespace plumb::cases
