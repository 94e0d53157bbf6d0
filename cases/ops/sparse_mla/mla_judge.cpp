// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/mla_judge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cases/ops/metadata/integer_inputs.h"
#include "reference/sparse_mla/mla_combine.h"
#include "reference/sparse_mla/mla_partials.h"
#include "reference/sparse_mla/sparse_mla_decode.h"
#include "reference/sparse_mla/sparse_mla_prefill.h"
#include "reference/sparse_mla/unfused_attention.h"

namespace plumb::cases {

namespace {

const std::int32_t* optional_data(const TensorSet& tensors, const std::string& name) {
  return tensors.contains(name) ? tensors.at(name).data<std::int32_t>() : nullptr;
}

reference::KvCache cache_of(const MlaSide& side, const TensorSet& tensors) {
  if (side.width == 0) return {};
  return {.data = tensors.at(side.cache_name()).data<std::uint8_t>(),
          .block_stride_bytes = side.cache.block_bytes(),
          .num_blocks = side.cache.blocks(),
          .page = side.cache.page,
          .dialect = side.cache.dialect,
          .layout = side.cache.layout,
          .scale_reading = side.cache.scale_reading,
          .row_dims = side.cache.row_dims};
}

reference::MlaCandidates candidates_of(const MlaSide& side, const TensorSet& tensors) {
  if (side.width == 0) return {};
  const HostTensor& indices = tensors.at(side.name + "_indices");
  reference::MlaCandidates candidates;
  candidates.indices = indices.data<std::int32_t>();
  candidates.lengths = optional_data(tensors, side.name + "_lengths");
  candidates.indptr = optional_data(tensors, side.name + "_indptr");
  candidates.width = side.width;
  if (candidates.indptr != nullptr) return candidates;
  candidates.request_stride = indices.spec().strides[0];
  candidates.query_stride = indices.spec().strides[1];
  return candidates;
}

// The problem for the reference. Slots of far caches are converted to those of the host's cache.
class MlaView {
 public:
  MlaView(const MlaShape& shape, const TensorSet& tensors) {
    const HostTensor& q = tensors.at("q");
    problem_.q = q.data<std::uint16_t>();
    problem_.requests = shape.requests;
    problem_.queries = shape.queries;
    problem_.heads = shape.heads;
    problem_.q_request_stride = q.spec().strides[0];
    problem_.q_query_stride = q.spec().strides[1];
    problem_.q_head_stride = q.spec().strides[2];
    problem_.main_cache = cache_of(shape.main, tensors);
    problem_.extra_cache = cache_of(shape.extra, tensors);
    problem_.main = candidates_of(shape.main, tensors);
    problem_.extra = candidates_of(shape.extra, tensors);
    if (tensors.contains("attn_sink")) problem_.attn_sink = tensors.at("attn_sink").data<float>();
    problem_.sm_scale = shape.sm_scale;
    renumber(shape.main, tensors, main_slots_, problem_.main);
    renumber(shape.extra, tensors, extra_slots_, problem_.extra);
  }
  MlaView(const MlaView&) = delete;
  MlaView& operator=(const MlaView&) = delete;

  const reference::SparseMlaProblem& problem() const { return problem_; }

 private:
  static void renumber(const MlaSide& side, const TensorSet& tensors,
                       std::vector<std::int32_t>& slots, reference::MlaCandidates& candidates) {
    if (side.width == 0 || !side.cache.far) return;
    const std::int64_t extent = tensors.at(side.name + "_indices").extent();
    for (std::int64_t i = 0; i < extent; ++i) {
      slots.push_back(static_cast<std::int32_t>(side.cache.pool_slot(candidates.indices[i])));
    }
    candidates.indices = slots.data();
  }

  reference::SparseMlaProblem problem_;
  std::vector<std::int32_t> main_slots_, extra_slots_;
};

bool is_split(const reference::TilePlan& plan, std::int64_t request) {
  const auto r = static_cast<std::size_t>(request);
  return plan.num_splits[r + 1] - plan.num_splits[r] > 1;
}

// Expects a tile plan. For a part without work only begin_req is promised (compared); padding never
// is.
Expectation expect_tiles(const HostTensor& got, const reference::TilePlan& plan,
                         std::int64_t requests) {
  std::vector<std::int64_t> expected;
  for (std::int64_t part = 0; part < got.rows(); ++part) {
    const reference::Tile& tile = plan.tiles[static_cast<std::size_t>(part)];
    const auto* stored = got.row<std::int32_t>(part);
    if (tile.begin_req < requests) {
      expected.insert(expected.end(), {tile.begin_req, tile.end_req, tile.begin_block,
                                       tile.end_block, tile.begin_split, tile.first_split,
                                       tile.last_split, stored[kTileFields - 1]});
    } else {
      expected.push_back(std::max<std::int64_t>(stored[0], requests));
      expected.insert(expected.end(), stored + 1, stored + kTileFields);
    }
  }
  return expect_exact(got, expected, {});
}

reference::TilePlan plan_of(const MlaShape& shape, const reference::SparseMlaProblem& problem) {
  return reference::make_tile_plan(reference::blocks_of_requests(problem, shape.block_n),
                                   static_cast<std::int32_t>(shape.parts),
                                   static_cast<std::int32_t>(shape.fixed_overhead));
}

Expectations expect_outputs(const MlaShape& shape, const TensorSet& tensors, bool structured,
                            reference::SparseMlaDecode& expected) {
  expected.out.structured = expected.lse.structured = structured;
  Expectations expectations;
  expectations.push_back(
      expect_floats(tensors.at("out"), expected.out, {},
                    groups_of(expected.out.rows, shape.queries * shape.heads, "request")));
  if (tensors.contains("lse")) {
    expectations.push_back(expect_floats(tensors.at("lse"), expected.lse, {},
                                         groups_of(expected.lse.rows, shape.heads, "request")));
  }
  return expectations;
}

// The rows of a tensor without the gaps between them.
std::vector<float> packed(const HostTensor& tensor) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    const auto* first = tensor.row<float>(row);
    values.insert(values.end(), first, first + tensor.columns());
  }
  return values;
}

// Expects the partial results of split requests. The outputs of these requests are then judged once
// more, from the partial results that the device stored.
void expect_splits(const MlaShape& shape, const reference::SparseMlaProblem& problem,
                   const reference::TilePlan& plan, const TensorSet& tensors,
                   const reference::Numerics& numerics, bool structured,
                   reference::SparseMlaDecode expected, Expectations& expectations) {
  const std::int64_t request_rows = shape.queries * shape.heads;
  const HostTensor& out = tensors.at("partial_out");
  const HostTensor& lse = tensors.at("partial_lse");
  reference::MlaPartials partials =
      reference::sparse_mla_partials(problem, numerics, plan, shape.block_n);
  partials.out.structured = partials.lse.structured = structured;
  expectations.push_back(expect_floats(out, partials.out, partials.out_written,
                                       groups_of(partials.out.rows, request_rows, "slot")));
  expectations.push_back(expect_floats(lse, partials.lse, partials.lse_written,
                                       groups_of(partials.lse.rows, shape.queries, "slot")));

  reference::mla_combine(problem, numerics, plan.num_splits, packed(out).data(), packed(lse).data(),
                         expected);
  expected.out.structured = structured;
  RowMask split_rows;
  for (std::int64_t row = 0; row < expected.out.rows; ++row) {
    split_rows.push_back(is_split(plan, row / request_rows));
  }
  expectations.push_back(expect_floats(tensors.at("out"), expected.out, split_rows,
                                       groups_of(expected.out.rows, request_rows, "request")));
  expectations.back().basis = " from stored partials";
}

}  // namespace

reference::TilePlan mla_plan(const MlaShape& shape, const TensorSet& tensors) {
  return plan_of(shape, MlaView(shape, tensors).problem());
}

RowMask parts_with_work(const MlaShape& shape, const reference::TilePlan& plan) {
  RowMask mask;
  for (const reference::Tile& tile : plan.tiles) mask.push_back(tile.begin_req < shape.requests);
  return mask;
}

RowMask written_slots(const MlaShape& shape, const reference::TilePlan& plan,
                      std::int64_t rows_per_slot) {
  RowMask mask(static_cast<std::size_t>((shape.requests + shape.parts) * rows_per_slot), false);
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    if (!is_split(plan, request)) continue;
    const auto r = static_cast<std::size_t>(request);
    std::fill(mask.begin() + plan.num_splits[r] * rows_per_slot,
              mask.begin() + plan.num_splits[r + 1] * rows_per_slot, true);
  }
  return mask;
}

Expectations expect_mla_plan(const MlaShape& shape, const TensorSet& tensors) {
  if (!tensors.contains("tiles")) return {};
  return expect_tile_plan(tensors, mla_plan(shape, tensors), shape.requests);
}

Expectations expect_tile_plan(const TensorSet& tensors, const reference::TilePlan& plan,
                              std::int64_t requests) {
  return {
      expect_tiles(tensors.at("tiles"), plan, requests),
      expect_exact(tensors.at("num_splits"), {plan.num_splits.begin(), plan.num_splits.end()}, {})};
}

Expectations expect_mla_outputs(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured) {
  const MlaView view(shape, tensors);
  reference::SparseMlaDecode expected = reference::sparse_mla_decode(view.problem(), numerics);
  return expect_outputs(shape, tensors, structured, expected);
}

Expectations expect_mla(const MlaShape& shape, const TensorSet& tensors,
                        const reference::Numerics& numerics, bool structured,
                        bool stores_partials) {
  for (const MlaSide* side : {&shape.main, &shape.extra}) {
    if (!shape.ragged || side->width == 0) continue;
    Expectation ranges =
        expect_ranges(tensors.at(side->name + "_indptr"), shape.rows() * side->width, side->width);
    if (!compare(ranges).passed()) return {std::move(ranges)};
  }
  const MlaView view(shape, tensors);
  const reference::SparseMlaProblem& problem = view.problem();
  const reference::TilePlan plan = plan_of(shape, problem);
  Expectations expectations = expect_mla_plan(shape, tensors);
  reference::SparseMlaDecode expected = reference::sparse_mla_decode(problem, numerics);
  append(expect_outputs(shape, tensors, structured, expected), expectations);
  bool any_split = false;
  for (std::int64_t request = 0; request < shape.requests; ++request) {
    any_split = any_split || is_split(plan, request);
  }
  if (stores_partials && any_split && tensors.contains("partial_out")) {
    expect_splits(shape, problem, plan, tensors, numerics, structured, expected, expectations);
  }
  return expectations;
}

Expectations expect_mla_prefill(const MlaShape& shape, const TensorSet& tensors,
                                const reference::Numerics& numerics, bool structured) {
  const MlaView view(shape, tensors);
  const bool fused = numerics.score == reference::Format::f32;
  reference::SparseMlaPrefill expected =
      fused ? reference::sparse_mla_prefill(view.problem(), numerics)
            : reference::unfused_mla_prefill(view.problem(), numerics);
  Expectations expectations;
  const auto expect = [&](const char* name, reference::Estimate& estimate, std::int64_t group) {
    if (!tensors.contains(name)) return;
    estimate.structured = structured;
    expectations.push_back(expect_floats(tensors.at(name), estimate, {},
                                         groups_of(estimate.rows, group, "query row")));
  };
  expect("out", expected.out, shape.heads);
  expect("max_logits", expected.max_logits, 1);
  expect("lse", expected.lse, 1);
  return expectations;
}

}  // namespace plumb::cases
