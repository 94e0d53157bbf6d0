// SPDX-License-Identifier: Apache-2.0
//
// Cases of sparse_mla_decode: capacity and live count are requests.
#include "reference/sparse_mla_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cases/mla_inputs.h"
#include "cases/mla_judge.h"
#include "reference/tile_plan.h"

namespace plumb::cases {

namespace {

using reference::Dialect;
using reference::kMlaDim;

constexpr float kSmScale = 0.0323530F;  // 512^-0.55: no power of two, and not the model's 512^-0.5

// FlashMLA's metadata object: empty until the first call on it has planned.
struct PlanState : OpState {
  plumb_mla_plan plan{};
};

plumb_format format_of(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? PLUMB_E4M3FN : PLUMB_E4M3FNUZ;
}

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
    params.main = device_candidates(shape_.main, tensors);
    params.extra = device_candidates(shape_.extra, tensors);
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

  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    const reference::TilePlan plan = mla_plan(shape_, step);
    if (spec.name == "tiles") return parts_with_work(shape_, plan);
    if (spec.name == "partial_out") {
      return written_slots(shape_, plan, shape_.queries * shape_.heads);
    }
    if (spec.name == "partial_lse") return written_slots(shape_, plan, shape_.queries);
    return {};
  }

  // Products of q with k and of p with v, several at a time in a vector; decoding a cache anew for
  // each tile of heads; barriers.
  double cost() const override {
    constexpr std::int64_t kHeadTile = 16, kTokenTile = 16, kThreads = 128, kBarriers = 4;
    constexpr double kProduct = 0.25, kDecode = 2.5;
    const std::int64_t candidates = shape_.main.width + shape_.extra.width;
    const std::int64_t head_tiles = (shape_.heads + kHeadTile - 1) / kHeadTile;
    const std::int64_t products = shape_.rows() * shape_.heads * candidates * 2 * kMlaDim;
    const std::int64_t decoded = shape_.rows() * head_tiles * candidates * kMlaDim;
    const std::int64_t barriers =
        head_tiles * kThreads *
        (shape_.rows() * candidates / kTokenTile * kBarriers + shape_.parts * shape_.queries);
    return kProduct * static_cast<double>(products) + kDecode * static_cast<double>(decoded) +
           kBarrierCost * static_cast<double>(barriers);
  }
  // End to end and by splits, values and bounds.
  double reference_cost() const override {
    const std::int64_t candidates = shape_.main.width + shape_.extra.width;
    return 3.0 * static_cast<double>(shape_.rows() * shape_.heads * candidates * 2 * kMlaDim);
  }
  double checked_factor() const override { return 25; }

  // Two products for each head and candidate.
  ReferenceWork reference_work() const override {
    const auto scores = static_cast<double>(shape_.rows() * shape_.heads *
                                            (shape_.main.width + shape_.extra.width));
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = 2 * kMlaDim * scores,
            .exps = scores};
  }

 private:
  static plumb_mla_cache device_cache(const MlaSide& side, const DeviceTensors& tensors) {
    if (side.width == 0) return {};
    return {.data = tensors.get<std::uint8_t>(side.name + "_cache"),
            .block_stride_bytes = side.cache.block_bytes(),
            .num_blocks = side.cache.num_blocks(),
            .page = static_cast<std::int32_t>(side.cache.page),
            .dialect = format_of(side.cache.dialect)};
  }

  plumb_mla_candidates device_candidates(const MlaSide& side, const DeviceTensors& tensors) const {
    if (side.width == 0) return {};
    plumb_mla_candidates candidates{};
    candidates.indices = tensors.get<std::int32_t>(side.name + "_indices");
    candidates.lengths = tensors.get<std::int32_t>(side.name + "_lengths");
    candidates.indptr = tensors.get<std::int32_t>(side.name + "_indptr");
    candidates.width = static_cast<std::int32_t>(side.width);
    if (shape_.ragged) return candidates;
    const std::vector<std::int64_t>& strides = inputs_.at(side.name + "_indices").spec().strides;
    candidates.request_stride = strides[0];
    candidates.query_stride = strides[1];
    return candidates;
  }

  MlaShape shape_;
  TensorSet inputs_;  // layouts only
};

// One of the words that a parameter may be; the first is the default.
template <class T>
T choose(const Row& row, std::string_view parameter,
         const std::vector<std::pair<std::string_view, T>>& words) {
  const std::string_view word = row.word(parameter);
  if (word.empty()) return words.front().second;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  throw BadRow(fmt::format("{}: {} cannot be '{}'", row.where, parameter, word));
}

Dialect dialect_of(const Row& row, std::string_view parameter, Dialect default_dialect) {
  return choose<Dialect>(
      row, parameter,
      {{"", default_dialect}, {"e4m3fn", Dialect::e4m3fn}, {"e4m3fnuz", Dialect::e4m3fnuz}});
}

// A context a little longer than what a row attends to, so that rows differ and slots stay unused.
MlaSide side_of(const Row& row, std::string name, std::int64_t width, std::int64_t page,
                Dialect dialect) {
  MlaSide side;
  side.scattered = name == "extra";
  side.name = std::move(name);
  side.width = width;
  side.cache.page = page;
  side.cache.context = width + width / 4 + 3;
  side.cache.sequences = std::min<std::int64_t>(row.integer("requests"), 4);
  side.cache.dialect = dialect;
  side.cache.far = row.integer("far") != 0;
  return side;
}

MlaShape shape_of(const Row& row, const device::Properties& platform) {
  MlaShape shape;
  shape.requests = row.integer("requests");
  shape.queries = row.integer("queries");
  shape.heads = row.integer("heads");
  shape.block_n = row.integer("block_n");
  shape.fixed_overhead = row.integer("fixed_overhead");
  shape.parts = row.integer("parts");
  if (shape.parts == 0) {
    shape.parts = reference::plan_parts(platform.multiprocessors, shape.queries, shape.heads);
  }
  shape.ragged = choose<bool>(row, "form", {{"dense", false}, {"ragged", true}});
  shape.lengths = choose<MlaLengths>(row, "lengths",
                                     {{"full", MlaLengths::full},
                                      {"none", MlaLengths::none},
                                      {"edges", MlaLengths::edges},
                                      {"random", MlaLengths::random}});
  shape.sinks = choose<MlaSinks>(
      row, "sinks",
      {{"finite", MlaSinks::finite}, {"none", MlaSinks::none}, {"infinite", MlaSinks::infinite}});
  shape.strided = row.integer("strided") != 0;
  shape.repeats = row.integer("repeats") != 0;
  shape.holes_percent = row.integer("holes_percent");
  shape.lonely_every = row.integer("lonely_every");
  shape.sm_scale = kSmScale;
  const bool fnuz = platform.fp8 == device::Fp8Dialect::e4m3fnuz;
  shape.main = side_of(row, "main", row.integer("width"), row.integer("page"),
                       dialect_of(row, "dialect", fnuz ? Dialect::e4m3fnuz : Dialect::e4m3fn));
  shape.extra = side_of(row, "extra", row.integer("extra_width"), row.integer("extra_page"),
                        dialect_of(row, "extra_dialect", Dialect::e4m3fn));
  return shape;
}

void check(const Row& row, const MlaShape& shape) {
  if (shape.ragged && (shape.queries > 1 || shape.lengths == MlaLengths::none)) {
    throw BadRow(
        fmt::format("{}: a ragged row has one query, and its length in indptr", row.where));
  }
  if ((shape.lonely_every == 1) != (row.trivial == "zero")) {
    throw BadRow(fmt::format(
        "{}: trivial has to be \"zero\" where lonely_every is 1, and only there", row.where));
  }
}

}  // namespace

OpDefinition define_sparse_mla_decode() {
  OpDefinition op;
  op.name = "sparse_mla_decode";
  op.summary = "sparse attention of decode tokens over paged fp8 caches, split over the grid";
  op.parameters = {
      {"requests", 2, 1, 4096, "padded batch"},
      {"queries", 1, 1, 16, "query rows of a request"},
      {"heads", 16, 1, 1024, "query heads of this rank"},
      {"width", 128, 1, 1 << 20, "most candidates of a row in the main cache"},
      {"page", 64, 1, 4096, "tokens of a main block"},
      {"extra_width", 0, 0, 1 << 20, "most candidates of a row in the extra cache; 0: none"},
      {"extra_page", 64, 1, 4096, "tokens of an extra block"},
      {"parts", 0, 0, 65535, "parts of the tile plan; 0: as the platform's multiprocessors ask"},
      {"block_n", 64, 1, 4096, "candidates of a block of the tile plan"},
      {"fixed_overhead", 5, 0, 64, "cost of a request in the tile plan, in blocks"},
      {"holes_percent", 0, 0, 100, "candidates that are -1"},
      {"lonely_every", 0, 0, 4096, "each so many-th row has no candidate but -1; 0: none"},
      {"repeats", 0, 0, 1, "1: every fifth candidate names the slot of the one before"},
      {"strided", 0, 0, 1, "1: gaps between the rows of q and of dense indices"},
      {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the caches"}};
  op.word_parameters = {"form", "lengths", "sinks", "dialect", "extra_dialect"};
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    MlaShape shape = shape_of(row, platform);
    check(row, shape);
    return std::make_unique<SparseMlaDecodeProblem>(std::move(shape));
  };
  return op;
}

}  // namespace plumb::cases
