// SPDX-License-Identifier: Apache-2.0
//
// Cases of sparse_mla_decode. The batch has live and padded requests.
#include "reference/sparse_mla/sparse_mla_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/ops/sparse_mla/mla_inputs.h"
#include "cases/ops/sparse_mla/mla_judge.h"
#include "cases/ops/sparse_mla/mla_members.h"
#include "cases/ops/sparse_mla/mla_rows.h"
#include "cases/tables/dialect.h"
#include "cases/tables/table_problem.h"
#include "reference/sparse_mla/tile_plan.h"

namespace plumb::cases {

namespace sparse_mla_decode_cases {

using reference::Dialect;
using reference::kMlaDim;
using reference::KvLayout;
using reference::ScaleReading;
using reference::ScaleWriting;

// dims^-0.55: neither a power of two nor the usual dims^-0.5, which a kernel may have hard-coded.
constexpr float kSmScaleV4 = 0.0323520F, kSmScaleV32 = 0.0303227F;

// The context is a quarter longer than what a row attends to, so that rows differ and some slots
// stay unused.
MlaSide side_of(const Row& row, const std::string& name, Dialect dialect) {
  const std::string prefix = name == "extra" ? "extra_" : "";
  MlaSide side;
  side.scattered = name == "extra";
  side.name = name;
  side.width = row.integer(prefix + "width");
  side.cache.page = row.integer(prefix + "page");
  side.cache.given_blocks = row.integer(prefix + "blocks");
  side.cache.context = side.width + side.width / 4 + 3;
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

float sm_scale_of(const Row& row) { return row.word("layout") == "v32" ? kSmScaleV32 : kSmScaleV4; }

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
  shape.main = side_of(row, "main", dialect_of(row, "dialect", platform));
  shape.extra = side_of(row, "extra", dialect_of(row, "extra_dialect", Dialect::e4m3fn));
  shape.sm_scale = row.real("sm_scale", sm_scale_of(row));
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

using P = plumb_sparse_mla_decode_params;

MlaCacheMembers add_cache(TablePart<P>& t, const std::string& side) {
  const auto cache_of = [side](const Row& row) {
    return side_of(row, side, Dialect::e4m3fn).cache;
  };
  if (side == "main") {
    return {t.part("main_cache", &P::main_cache), MlaLayouts::all, "", dialect_words("dialect"),
            cache_of};
  }
  const WordChoices words{"extra_dialect",
                          {{"e4m3fn", PLUMB_E4M3FN}, {"e4m3fnuz", PLUMB_E4M3FNUZ}}};
  return {t.part("extra_cache", &P::extra_cache).when(parameter("extra_width")), MlaLayouts::all,
          "extra_", words, cache_of};
}

const ContractChoice kPlan{
    "plan",
    {"required", "none"},
    "none: the kernel gets neither a tile plan nor partial results",
    {{"*", "*", "one of them has a struct that the other lacks: such a pair cannot run"}}};

void add_plan(TablePart<P>& call, const Formula& requests, const Formula& queries,
              const Formula& heads) {
  using S = plumb_mla_plan;
  const Formula none = word_is("plan", "none");
  call.given(!none, call.has("plan", &P::plan));
  TablePart<P> t = call.when(!none);
  auto plan = t.pointed("plan", &P::plan);
  const Formula on_platform = computed("parts", [=](const FormulaValues& values) {
    return reference::plan_parts(values.platform->multiprocessors, queries.value(values),
                                 heads.value(values));
  });
  const Formula parts =
      plan.scalar("num_parts", &S::num_parts, or_else(parameter("parts"), on_platform));
  plan.scalar("block_n", &S::block_n);
  plan.scalar("fixed_overhead", &S::fixed_overhead);
  const Formula slots = requests + parts;
  t.scratch("partial_out", &P::partial_out, {slots, queries, heads, kMlaDim},
            "output of each part of a split request");
  t.strides({{"partial_out_slot_stride", &P::partial_out_slot_stride},
             {"partial_out_query_stride", &P::partial_out_query_stride},
             {"partial_out_head_stride", &P::partial_out_head_stride}});
  t.scratch("partial_lse", &P::partial_lse, {slots, queries, heads}, "base 2");
  t.strides({{"partial_lse_slot_stride", &P::partial_lse_slot_stride},
             {"partial_lse_query_stride", &P::partial_lse_query_stride}});
  plan.state("tiles", &S::tiles, {parts, kTileFields}, "what each part of the grid does");
  plan.state("num_splits", &S::num_splits, {requests + 1}, "prefix sums");
}

Formula members(TablePart<P>& t) {
  using C = plumb_mla_candidates;
  const Formula requests = t.scalar("requests", &P::requests);
  const Formula queries = t.scalar("queries", &P::queries), heads = t.scalar("heads", &P::heads);
  t.real("sm_scale", &P::sm_scale, sm_scale_of, "factor of the scores");
  auto main = t.part("main", &P::main), extra = t.part("extra", &P::extra);
  const Formula width = main.scalar("width", &C::width);
  const Formula extra_width = extra.scalar("width", &C::width, parameter("extra_width"));
  MlaCacheMembers main_cache = add_cache(t, "main"), extra_cache = add_cache(t, "extra");
  const Formula dims = main_cache.layout * (reference::kV32Dim - kMlaDim) + kMlaDim;
  const Formula gap = parameter("strided") * 8;
  const Formula head_stride = t.scalar("q_head_stride", &P::q_head_stride, dims + gap);
  const Formula query_stride =
      t.scalar("q_query_stride", &P::q_query_stride, heads * head_stride + gap);
  const Formula request_stride =
      t.scalar("q_request_stride", &P::q_request_stride, queries * query_stride + gap);
  t.given(word_is("form", "ragged"), main.has("indptr", &C::indptr));
  t.input("q", &P::q, {requests, queries, heads, dims},
          "queries: the latent, then the rotated part of v32")
      .strides({request_stride, query_stride, head_stride, 1});
  main_cache.add_tensor("main_cache");
  add_mla_candidates(main, "main", width, requests, queries);
  extra_cache.add_tensor("extra_cache");
  add_mla_candidates(extra.when(extra_width), "extra", extra_width, requests, queries);
  t.input("attn_sink", &P::attn_sink, {heads},
          "logarithm of what each head adds to the denominator")
      .when(!word_is("sinks", "none"));
  t.output("out", &P::out, {requests, queries, heads, kMlaDim}, "the attention's output");
  t.strides({{"out_request_stride", &P::out_request_stride},
             {"out_query_stride", &P::out_query_stride},
             {"out_head_stride", &P::out_head_stride}});
  t.output("lse", &P::lse, {requests, heads, queries}, "natural logarithm")
      .when(!word_is("outputs", "out"));
  t.strides(
      {{"lse_request_stride", &P::lse_request_stride}, {"lse_head_stride", &P::lse_head_stride}});
  add_plan(t, requests, queries, heads);
  return requests;
}

class SparseMlaDecodeProblem final : public TableProblem<P> {
 public:
  SparseMlaDecodeProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), shape_(shape_of(row, platform)) {
    check(row, shape_);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_mla_inputs(shape_, step, tensors);
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics,
                      const plumb_numerics& declared) const override {
    return expect_mla(shape_, tensors, numerics, step.fill == Fill::exact,
                      declared.stores_partials != 0);
  }

  bool rows_have_places() const override { return !shape_.ragged; }
  Expectations expect_sample(const Step& step, const TensorSet& tensors,
                             const reference::Numerics& numerics,
                             const plumb_numerics&) const override {
    return expect_mla_outputs(shape_, tensors, numerics, step.fill == Fill::exact);
  }
  Expectations expect_whole(const Step&, const TensorSet& tensors, const reference::Numerics&,
                            const plumb_numerics&) const override {
    return expect_mla_plan(shape_, tensors);
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

  // The last field of a tile is padding: planners leave it unwritten.
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override {
    if (spec.name != "tiles") return {};
    return ColumnRanges(static_cast<std::size_t>(tensors.at(spec.name).rows()),
                        {0, kTileFields - 1});
  }

  double cost() const override { return mla_cost(shape_); }
  // The reference runs twice: outputs are judged end to end, and from the partial results of
  // splits.
  double reference_cost() const override { return 2 * mla_reference_cost(shape_); }
  double checked_factor() const override { return 25; }

  // Two products for each head and candidate: with k and with v.
  ReferenceWork reference_work() const override { return mla_work(shape_, make_tensors()); }

 private:
  void place(TensorSpec& spec) const override {
    place_mla_cache(shape_.main, spec);
    place_mla_cache(shape_.extra, spec);
  }

  MlaShape shape_;
};

}  // namespace sparse_mla_decode_cases

OpDefinition define_sparse_mla_decode() {
  using namespace sparse_mla_decode_cases;
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
       {"fixed_overhead", 5, 0, 64, "cost of a request in the tile plan, in blocks"},
       kOutGap});
  op.word_parameters = with_candidate_words(
      {{"layout", {"v4", "v32"}, "of the main cache"},
       {"scale_reading", {"fp32", "bf16", "e8m0"}, "of v32: how a kernel reads the scales"},
       {"scales", {"fp32", "power_of_two"}, "of v32: what the cache holds"},
       dialect_word(),
       dialect_word("extra_dialect", "of the extra cache; else e4m3fn")});
  op.choices = {kMlaOutputs, kPlan};
  op.make_problem = make_problem_of<SparseMlaDecodeProblem>;
  op.table = &table_of<members>();
  op.row_count = "requests";
  return op;
}

}  // namespace plumb::cases
