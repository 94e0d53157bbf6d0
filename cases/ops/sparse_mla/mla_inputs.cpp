// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/mla_inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

using reference::KvLayout;

enum MlaSalt : std::uint64_t { kLengths = 1, kCache, kRows, kKeep, kQ, kSink, kTail, kLead };

std::uint64_t seed_for(const Step& step, std::string_view name, MlaSalt salt) {
  return mix(mix(step.seed, seed_of(name)), salt);
}

// Lengths around the borders of the first two blocks, and around the width.
std::vector<std::int64_t> edge_lengths(std::int64_t width, std::int64_t block_n) {
  std::vector<std::int64_t> edges = {0,           1,
                                     block_n - 1, block_n,
                                     block_n + 1, 2 * block_n - 1,
                                     2 * block_n, 2 * block_n + 1,
                                     width - 1,   width};
  std::erase_if(edges, [&](std::int64_t length) { return length < 0 || length > width; });
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Positions of a row's candidates in the context of its sequence. All differ, unless the row has
// repeats.
std::vector<std::int64_t> positions(const MlaShape& shape, const MlaSide& side, std::int64_t row,
                                    std::int64_t length, std::uint64_t seed) {
  const std::int64_t context = side.cache.context;
  const std::int64_t first =
      integer(seed, 2 * row, 0, side.scattered ? context - 1 : context - length);
  std::int64_t step = side.scattered ? integer(seed, 2 * row + 1, 1, context) : 1;
  while (std::gcd(step, context) != 1 && side.scattered) ++step;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < length; ++i) {
    const bool repeated = shape.repeats && i % 5 == 4;
    chosen.push_back(repeated ? chosen.back() : (first + i * step) % context);
  }
  return chosen;
}

// Which of a row's candidates, those of main before those of extra, are no holes. Exact fills keep
// a power of two of them, evenly spread, so that their equal weights add up to exactly 1.
std::vector<bool> kept(const MlaShape& shape, const Step& step, std::int64_t row,
                       std::int64_t count) {
  std::vector<bool> keep(static_cast<std::size_t>(count), true);
  const std::uint64_t seed = mix(seed_for(step, "row", kKeep), static_cast<std::uint64_t>(row));
  const bool lonely = shape.lonely_every != 0 && row % shape.lonely_every == shape.lonely_every - 1;
  const std::int64_t power =
      count == 0 ? 0 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (lonely) {
      keep[place] = false;
    } else if (step.fill == Fill::exact) {
      keep[place] = (i + 1) * power / count > i * power / count;
    } else {
      keep[place] = integer(seed, i / shape.hole_run, 0, 99) >= shape.holes_percent;
    }
  }
  return keep;
}

// An index that has to be skipped: -1. For a workspace of rows also -2, and the two rows right
// behind the workspace.
std::int32_t hole(const MlaSide& side, std::uint64_t bits) {
  if (side.cache.layout != KvLayout::rows || bits % 2 == 0) return -1;
  const auto rows = static_cast<std::int32_t>(side.cache.num_blocks());
  switch (bits / 2 % 3) {
    case 0: return -2;
    case 1: return rows;
    default: return rows + 1;
  }
}

// An index for places behind a row's candidates, which must not be used: a hole, a slot full of
// NaN, or another token. In a workspace of rows another token replaces NaN, since a prefill kernel
// may read, but not use, such a row.
std::int32_t beyond(MlaCache& cache, const MlaSide& side, std::int64_t sequence,
                    std::uint64_t bits) {
  const bool rows = side.cache.layout == KvLayout::rows;
  switch (bits % 3) {
    case 0: return hole(side, bits >> 2);
    case 1:
      if (!rows) return cache.unused(bits >> 2);
      [[fallthrough]];
    default: return cache.use(sequence, static_cast<std::int64_t>(bits >> 2) % side.cache.context);
  }
}

// Writes one cache and the candidates in it.
class SideFill {
 public:
  SideFill(const MlaShape& shape, const MlaSide& side, const Step& step, TensorSet& tensors)
      : shape_(shape),
        side_(side),
        step_(step),
        lengths_(mla_lengths(shape, side, step)),
        indices_(tensors.at(side.name + "_indices")),
        cache_(side.cache, step, seed_for(step, side.name, kCache), tensors.at(side.cache_name())),
        lead_(lead()),
        written_(lead_) {}

  // Fills the entries in front of the first ragged row.
  void write_lead() {
    const std::uint64_t seed = seed_for(step_, side_.name, kLead);
    for (std::int64_t i = 0; i < lead_; ++i) {
      indices_.data<std::int32_t>()[i] = beyond(cache_, side_, 0, random_bits(seed, i));
    }
  }

  std::int32_t length(std::int64_t request) const {
    return lengths_[static_cast<std::size_t>(request)];
  }

  // `keep` points to this side's first candidate.
  void write_row(std::int64_t row, std::vector<bool>::const_iterator keep) {
    const std::int64_t request = row / shape_.queries, sequence = request % side_.cache.sequences;
    const std::vector<std::int64_t> chosen =
        positions(shape_, side_, row, length(request), seed_for(step_, side_.name, kRows));
    std::int32_t* to = row_start(row);
    written_ += length(request);
    const std::uint64_t seed = seed_for(step_, side_.name, kTail);
    const std::int64_t first = row * side_.width;
    for (std::int64_t i = 0; i < length(request); ++i) {
      *to++ = *keep++ ? cache_.use(sequence, chosen[static_cast<std::size_t>(i)])
                      : hole(side_, random_bits(seed, (first + i) / shape_.hole_run));
    }
    if (shape_.ragged) return;
    for (std::int64_t i = length(request); i < side_.width; ++i) {
      *to++ = beyond(cache_, side_, sequence, random_bits(seed, first + i));
    }
  }

  // Fills dead rows of dense indices, or the entries behind the last ragged row.
  void write_dead() {
    const std::int64_t first_dead = step_.live * shape_.queries;
    if (shape_.ragged) {
      return write_dead(row_start(first_dead), indices_.elements() - written_);
    }
    for (std::int64_t row = first_dead; row < shape_.rows(); ++row) {
      write_dead(row_start(row), side_.width);
    }
  }

  void write_lengths(TensorSet& tensors) const {
    if (shape_.lengths == MlaLengths::none) return;
    if (!shape_.ragged) {
      std::ranges::copy(lengths_, tensors.at(side_.name + "_lengths").data<std::int32_t>());
      return;
    }
    auto* indptr = tensors.at(side_.name + "_indptr").data<std::int32_t>();
    indptr[0] = static_cast<std::int32_t>(lead_);
    for (std::size_t i = 0; i < lengths_.size(); ++i) indptr[i + 1] = indptr[i] + lengths_[i];
  }

 private:
  // Entries in front of the first ragged row. The list has a fixed size, so that there are at most
  // as many as the lengths leave room for.
  std::int64_t lead() const {
    if (!shape_.ragged) return 0;
    const auto all = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    return std::min(shape_.list_lead, indices_.elements() - all);
  }
  // Ragged rows follow each other: the next one starts where the last one ended.
  std::int32_t* row_start(std::int64_t row) {
    return shape_.ragged ? indices_.data<std::int32_t>() + written_
                         : indices_.row<std::int32_t>(row);
  }

  void write_dead(std::int32_t* to, std::int64_t count) const {
    if (shape_.lengths == MlaLengths::none) {
      std::fill_n(to, count, -1);
    } else if (step_.dead_rows != DeadRows::foreign) {
      const bool zero = step_.dead_rows == DeadRows::zero;
      const std::int64_t last = side_.cache.num_blocks() * side_.cache.page - 1;
      std::fill_n(to, count, zero ? 0 : static_cast<std::int32_t>(last));
    }
  }

  const MlaShape& shape_;
  const MlaSide& side_;
  const Step& step_;
  std::vector<std::int32_t> lengths_;
  HostTensor& indices_;
  MlaCache cache_;
  std::int64_t lead_;
  std::int64_t written_;  // candidates written so far
};

void fill_candidates(const MlaShape& shape, const Step& step, TensorSet& tensors) {
  std::vector<SideFill> sides;
  for (const MlaSide* side : {&shape.main, &shape.extra}) {
    if (side->width > 0) sides.emplace_back(shape, *side, step, tensors);
  }
  for (SideFill& side : sides) side.write_lead();
  for (std::int64_t row = 0; row < step.live * shape.queries; ++row) {
    std::int64_t count = 0;
    for (const SideFill& side : sides) count += side.length(row / shape.queries);
    const std::vector<bool> keep = kept(shape, step, row, count);
    auto next = keep.begin();
    for (SideFill& side : sides) {
      side.write_row(row, next);
      next += side.length(row / shape.queries);
    }
  }
  for (SideFill& side : sides) {
    side.write_dead();
    side.write_lengths(tensors);
  }
}

// Real fills give scores with a standard deviation of about 1. Adversarial fills have four kinds of
// rows: scores 8 times as large, so large that one candidate takes all the weight, so small that
// all weigh the same, and queries with one dimension other than 0.
double q_value(const MlaShape& shape, const Step& step, std::int64_t row, std::int64_t d,
               double noise) {
  if (step.fill == Fill::exact) return 0;
  const std::int64_t request = row / (shape.queries * shape.heads);
  const double typical = typical_value(step, request % shape.main.cache.sequences);
  const double value =
      noise / (shape.sm_scale * typical * std::sqrt(static_cast<double>(shape.key_dims())));
  if (step.fill == Fill::real) return value;
  switch (row % 4) {
    case 0: return 8 * value;
    case 1: return 300 * value;
    case 2: return 1e-3 * value;
    default: return d == 100 ? 20 * value : 0;
  }
}

void fill_q(const MlaShape& shape, const Step& step, HostTensor& q) {
  const std::uint64_t seed = seed_for(step, "q", kQ);
  const std::int64_t live_rows = step.live * shape.queries * shape.heads, dims = shape.key_dims();
  for (std::int64_t row = 0; row < live_rows; ++row) {
    auto* to = q.row<std::uint16_t>(row);
    for (std::int64_t d = 0; d < dims; ++d) {
      const double noise = normal(seed, static_cast<std::uint64_t>(row * dims + d));
      to[d] = reference::encode_bf16(q_value(shape, step, row, d, noise));
    }
  }
  fill_dead(q, live_rows, shape.rows() * shape.heads, step.dead_rows);
}

// Sinks of exact fills are -60, whose share is lost, or 0, one more term of weight 1. A share so
// small that only a wider format sees it would decide every tie of the output rounding.
float finite_sink(const Step& step, std::int64_t head) {
  if (step.fill == Fill::exact) return head % 4 < 2 ? -60.0F : 0.0F;
  const std::uint64_t seed = seed_for(step, "attn_sink", kSink);
  return static_cast<float>(4 * normal(seed, static_cast<std::uint64_t>(head)));
}

void fill_sinks(const MlaShape& shape, const Step& step, HostTensor& sinks) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kEdges = {kInfinity, -kInfinity, 0.0F, 60.0F, -60.0F};
  auto* to = sinks.data<float>();
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const bool edge = shape.sinks == MlaSinks::infinite && head % 2 == 0;
    to[head] =
        edge ? kEdges[static_cast<std::size_t>(head / 2) % kEdges.size()] : finite_sink(step, head);
  }
}

}  // namespace

std::string MlaSide::cache_name() const {
  return cache.layout == KvLayout::rows ? name : name + "_cache";
}

std::vector<std::int32_t> mla_lengths(const MlaShape& shape, const MlaSide& side,
                                      const Step& step) {
  const bool all = shape.lengths == MlaLengths::none;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(shape.requests), 0);
  const std::vector<std::int64_t> edges = edge_lengths(side.width, shape.block_n);
  const std::uint64_t seed = seed_for(step, side.name, kLengths);
  for (std::int64_t request = 0; request < (all ? shape.requests : step.live); ++request) {
    std::int64_t length = side.width;
    if (shape.lengths == MlaLengths::random) length = integer(seed, request, 0, side.width);
    if (shape.lengths == MlaLengths::edges) {
      length = edges[(random_bits(seed, 0) + static_cast<std::uint64_t>(request)) % edges.size()];
    }
    lengths[static_cast<std::size_t>(request)] = static_cast<std::int32_t>(length);
  }
  return lengths;
}

// Simulated work: products of q with k and of p with v, several in a vector instruction; decoding
// the caches once per tile of heads; barriers.
double mla_cost(const MlaShape& shape) {
  constexpr std::int64_t kTile = 16, kThreads = 128, kBarriers = 4;
  constexpr double kProduct = 0.25, kDecode = 2.5;
  const std::int64_t dims = shape.key_dims();
  const auto whole = [](std::int64_t count) { return (count + kTile - 1) / kTile * kTile; };
  const std::int64_t candidates =
      shape.rows() * (whole(shape.main.width) + whole(shape.extra.width));
  const std::int64_t head_tiles = whole(shape.heads) / kTile;
  const std::int64_t products = candidates * shape.heads * (dims + reference::kMlaDim);
  const std::int64_t decoded = candidates * head_tiles * dims;
  const std::int64_t barriers =
      head_tiles * kThreads * (candidates / kTile * kBarriers + shape.parts * shape.queries);
  return kProduct * static_cast<double>(products) + kDecode * static_cast<double>(decoded) +
         kBarrierCost * static_cast<double>(barriers);
}

double mla_reference_cost(const MlaShape& shape) {
  const std::int64_t candidates = shape.main.width + shape.extra.width;
  return 1.5 * static_cast<double>(shape.rows() * shape.heads * candidates *
                                   (shape.key_dims() + reference::kMlaDim));
}

ReferenceWork mla_work(const MlaShape& shape, const TensorSet& tensors) {
  const auto scores =
      static_cast<double>(shape.rows() * shape.heads * (shape.main.width + shape.extra.width));
  return {.bytes = reference_bytes(tensors),
          .multiply_adds = scores * static_cast<double>(shape.key_dims() + reference::kMlaDim),
          .exps = scores};
}

void fill_mla_inputs(const MlaShape& shape, const Step& step, TensorSet& tensors) {
  fill_candidates(shape, step, tensors);
  fill_q(shape, step, tensors.at("q"));
  if (shape.sinks != MlaSinks::none) fill_sinks(shape, step, tensors.at("attn_sink"));
}

}  // namespace plumb::cases
