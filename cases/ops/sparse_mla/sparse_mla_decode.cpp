// SPDX-License-Identifier: Apache-2.0
//
// Cases of sparse_mla_decode: capacity and live count are requests.
#include "reference/sparse_mla/sparse_mla_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_inputs.h"
#include "cases/ops/sparse_mla/mla_judge.h"
#include "cases/ops/sparse_mla/mla_rows.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::cases {

namespace {

using reference::Dialect;
using reference::kMlaDim;
using reference::KvLayout;
using reference::ScaleReading;
using reference::ScaleWriting;

// dims^-0.55, no power of two, and not the model's dims^-0.5.
constexpr float kSmScaleV4 = 0.0323520F, kSmScaleV32 = 0.0303227F;

// FlashMLA's metadata object: empty until the first call on it has planned.
struct PlanState : OpState {
  plumb_mla_plan plan{};
};

class SparseMlaDecodeProblem : public Problem {
 public:
  explicit SparseMlaDecodeProblem(MlaShape shape) : shape_(std::move(shape)) {
    add_mla_inputs(shape_, inputs_);
  }

  std::int64_t capacity() const override { return shape_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors = inputs_;
    const std::int64_t slots = shape_.requests + shape_.parts;
    const auto add = [&](const char* name, Dtype dtype, std::vector<std::int64_t> shape,
                         Role role) {
      tensors.add({.name = name, .dtype = dtype, .shape = std::move(shape), .role = role});
    };
    add("out", Dtype::bf16, {shape_.requests, shape_.queries, shape_.heads, kMlaDim}, Role::output);
    add("lse", Dtype::f32, {shape_.requests, shape_.heads, shape_.queries}, Role::output);
    add("partial_out", Dtype::f32, {slots, shape_.queries, shape_.heads, kMlaDim}, Role::scratch);
    add("partial_lse", Dtype::f32, {slots, shape_.queries, shape_.heads}, Role::scratch);
    add("tiles", Dtype::i32, {shape_.parts, kTileFields}, Role::state);
    add("num_splits", Dtype::i32, {shape_.requests + 1}, Role::state);
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_mla_inputs(shape_, step, tensors);
  }

  std::unique_ptr<OpState> make_state(const DeviceTensors& tensors) const override {
    auto state = std::make_unique<PlanState>();
    state->plan = {.tiles = tensors.get<std::int32_t>("tiles"),
                   .num_splits = tensors.get<std::int32_t>("num_splits"),
                   .num_parts = static_cast<std::int32_t>(shape_.parts),
                   .block_n = static_cast<std::int32_t>(shape_.block_n),
                   .fixed_overhead = static_cast<std::int32_t>(shape_.fixed_overhead),
                   .planned = 0};
    return state;
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState* state,
                      device::Stream stream) const override {
    plumb_sparse_mla_decode_params params{};
    params.q = tensors.get<std::uint16_t>("q");
    params.main_cache = device_cache(shape_.main, tensors);
    params.extra_cache = device_cache(shape_.extra, tensors);
    params.main = device_candidates(shape_, shape_.main, inputs_, tensors);
    params.extra = device_candidates(shape_, shape_.extra, inputs_, tensors);
    params.attn_sink = tensors.get<float>("attn_sink");
    params.out = tensors.get<std::uint16_t>("out");
    params.lse = tensors.get<float>("lse");
    params.partial_out = tensors.get<float>("partial_out");
    params.partial_lse = tensors.get<float>("partial_lse");
    params.plan = &dynamic_cast<PlanState&>(*state).plan;
    params.requests = shape_.requests;
    params.queries = shape_.queries;
    params.heads = shape_.heads;
    const std::vector<std::int64_t>& strides = inputs_.at("q").spec().strides;
    params.q_request_stride = strides[0];
    params.q_query_stride = strides[1];
    params.q_head_stride = strides[2];
    params.sm_scale = shape_.sm_scale;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics& declared) const override {
    return judge_mla(shape_, tensors, numerics, step.fill == Fill::exact,
                     declared.stores_partials != 0);
  }

  bool rows_have_places() const override { return !shape_.ragged; }
  std::vector<TensorReport> judge_sample(const Step& step, const TensorSet& tensors,
                                         const reference::Numerics& numerics,
                                         const plumb_numerics&) const override {
    return judge_mla_outputs(shape_, tensors, numerics, step.fill == Fill::exact);
  }
  std::vector<TensorReport> judge_whole(const Step&, const TensorSet& tensors,
                                        const reference::Numerics&,
                                        const plumb_numerics&) const override {
    return judge_mla_plan(shape_, tensors);
  }

  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    const reference::TilePlan plan = mla_plan(shape_, tensors);
    if (spec.name == "tiles") return parts_with_work(shape_, plan);
    if (spec.name == "partial_out") {
      return written_slots(shape_, plan, shape_.queries * shape_.heads);
    }
    if (spec.name == "partial_lse") return written_slots(shape_, plan, shape_.queries);
    return {};
  }

  double cost() const override { return mla_cost(shape_); }
  // End to end and by splits.
  double reference_cost() const override { return 2 * mla_reference_cost(shape_); }
  double checked_factor() const override { return 25; }

  // Two products for each head and candidate.
  ReferenceWork reference_work() const override { return mla_work(shape_, make_tensors()); }

 private:
  MlaShape shape_;
  TensorSet inputs_;  // layouts only
};

// A context a little longer than what a row attends to, so that rows differ and slots stay unused.
MlaSide side_of(const Row& row, std::string name, std::int64_t width, std::int64_t page,
                Dialect dialect) {
  MlaSide side;
  side.scattered = name == "extra";
  side.name = std::move(name);
  side.width = width;
  side.cache.page = page;
  side.cache.context = width + width / 4 + 3;
  side.cache.sequences = std::min<std::int64_t>(row.launched("requests"), 4);
  side.cache.dialect = dialect;
  side.cache.layout =
      choose<KvLayout>(row, "layout", {{"v4", KvLayout::v4}, {"v32", KvLayout::v32}});
  side.cache.scale_reading = choose<ScaleReading>(
      row, "scale_reading",
      {{"fp32", ScaleReading::fp32}, {"bf16", ScaleReading::bf16}, {"e8m0", ScaleReading::e8m0}});
  side.cache.scale_writing = choose<ScaleWriting>(
      row, "scales", {{"fp32", ScaleWriting::fp32}, {"power_of_two", ScaleWriting::power_of_two}});
  side.cache.gap = row.integer("block_gap");
  side.cache.far = row.integer("far") != 0;
  return side;
}

MlaShape shape_of(const Row& row, const device::Properties& platform) {
  MlaShape shape;
  shape.requests = row.integer("requests");
  shape.queries = row.integer("queries");
  read_candidates(row, shape);
  shape.block_n = row.integer("block_n");
  shape.fixed_overhead = row.integer("fixed_overhead");
  shape.parts = row.integer("parts");
  if (shape.parts == 0) {
    shape.parts = reference::plan_parts(platform.multiprocessors, shape.queries, shape.heads);
  }
  shape.main = side_of(row, "main", row.integer("width"), row.integer("page"),
                       dialect_of(row, "dialect", native_dialect(platform)));
  shape.extra = side_of(row, "extra", row.integer("extra_width"), row.integer("extra_page"),
                        dialect_of(row, "extra_dialect", Dialect::e4m3fn));
  shape.main.cache.given_blocks = row.integer("blocks");
  shape.extra.cache.given_blocks = row.integer("extra_blocks");
  shape.sm_scale = shape.main.cache.layout == KvLayout::v32 ? kSmScaleV32 : kSmScaleV4;
  return shape;
}

void check(const Row& row, const MlaShape& shape) {
  check_candidates(row, shape);
  const bool v32 = shape.main.cache.layout == KvLayout::v32;
  if (v32 || (row.word("scale_reading").empty() && row.word("scales").empty() &&
              shape.main.cache.gap == 0)) {
    return;
  }
  throw BadRow(
      fmt::format("{}: scale_reading, scales and block_gap are of layout \"v32\"", row.where));
}

}  // namespace

OpDefinition define_sparse_mla_decode() {
  OpDefinition op;
  op.name = "sparse_mla_decode";
  op.summary = "sparse attention of decode tokens over paged fp8 caches, split over the grid";
  op.parameters = with_candidate_parameters(
      {{"requests", 2, 1, 4096, "padded batch"},
       {"queries", 1, 1, 16, "query rows of a request"},
       {"width", 128, 1, 1 << 20, "most candidates of a row in the main cache"},
       {"page", 64, 1, 4096, "tokens of a main block"},
       {"extra_width", 0, 0, 1 << 20, "most candidates of a row in the extra cache; 0: none"},
       {"extra_page", 64, 1, 4096, "tokens of an extra block"},
       {"blocks", 0, 0, 1 << 30, "of the main cache; 0: what the tokens need"},
       {"extra_blocks", 0, 0, 1 << 30, "of the extra cache"},
       {"block_gap", 0, 0, 64, "tokens' worth of padding between blocks"},
       {"parts", 0, 0, 65535, "parts of the tile plan; 0: as the platform's multiprocessors ask"},
       {"block_n", 64, 1, 4096, "candidates of a block of the tile plan"},
       {"fixed_overhead", 5, 0, 64, "cost of a request in the tile plan, in blocks"}});
  op.word_parameters =
      with_candidate_words({"layout", "scale_reading", "scales", "dialect", "extra_dialect"});
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    MlaShape shape = shape_of(row, platform);
    check(row, shape);
    return std::make_unique<SparseMlaDecodeProblem>(std::move(shape));
  };
  op.row_count = "requests";
  return op;
}

}  // namespace plumb::cases
