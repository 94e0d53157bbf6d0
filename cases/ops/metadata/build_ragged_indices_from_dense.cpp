// SPDX-License-Identifier: Apache-2.0
//
// Cases of build_ragged_indices_from_dense. The table has live and padded rows. Dead rows
// have a length of 0 or below.
#include "reference/metadata/build_ragged_indices_from_dense.h"

#include <plumb/ops/metadata.h>

#include <limits>

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace build_ragged_indices_from_dense_cases {

using reference::DenseIndices;

constexpr std::int64_t kFarStride = std::int64_t{1} << 30;  // third row: 2^31 elements away

using P = plumb_build_ragged_indices_from_dense_params;

const ContractChoice kHoles{
    "holes", {"dropped", "kept"}, "entries that name no slot: what follows moves up, or they stay"};

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows), width = t.scalar("width", &P::width);
  t.scalar("num_rows", &P::num_rows);
  t.choice("holes", &P::holes, kHoles);
  const Formula far = parameter("far"), near_stride = width + parameter("row_gap");
  t.given(far, 0);
  t.scalar("indices_row_stride", &P::indices_row_stride, far * kFarStride + !far * near_stride);
  t.input("indices", &P::indices, {rows, width}, "dense table").strides({near_stride, 1});
  t.input("lengths", &P::lengths, {rows, 1}, "columns of each row that count");
  t.output("indptr", &P::indptr, {rows + 1, 1}, "first entry of each row");
  t.in_place("flat", &P::flat, {rows * width, 1}, "entries of all rows");
  return rows;
}

class BuildRaggedProblem final : public TableProblem<P> {
 public:
  BuildRaggedProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        gap_(row.integer("row_gap")),
        far_(row.integer("far") != 0) {
    if (far_ && (p_.width == 0 || kFarStride % p_.width != 0 || gap_ != 0)) {
      throw BadRow(row.where + ": far rows need a width that is a power of two, and no row_gap");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& indices = tensors.at("indices");
    for (std::int64_t row = 0; row < step.live; ++row) {
      auto* to = indices.row<std::int32_t>(row);
      for (std::int64_t j = 0; j < p_.width; ++j) to[j] = index(step, row * p_.width + j);
    }
    fill_dead_integers(indices, step.live, p_.rows, step.dead_rows);
    fill_lengths(step, tensors.at("lengths").data<std::int32_t>());
    fill_before(tensors.at("flat_before"), step.seed);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    DenseIndices input;
    input.indices = tensors.at("indices").data<std::int32_t>();
    input.lengths = tensors.at("lengths").data<std::int32_t>();
    input.rows = p_.rows;
    input.width = p_.width;
    input.row_stride = p_.width + gap_;
    input.num_rows = p_.num_rows;
    input.drop_holes = p_.holes == PLUMB_HOLES_DROPPED;
    const auto expected = build_ragged_indices_from_dense(input);
    return {expect_exact(tensors.at("indptr"), expected.indptr, {}),
            expect_ragged(tensors.at("flat"), front_over(expected.flat, tensors.at("flat_before")),
                          expected.indptr, "row")};
  }

  // If holes are dropped, one wave per row counts its entries, and moves them a wave's width at a
  // time.
  double cost() const override {
    if (p_.holes == PLUMB_HOLES_KEPT) {
      return indptr_cost(p_.rows) + row_blocks_cost(p_.rows, p_.width);
    }
    constexpr double kCounted = 6, kMoved = 11;  // shuffles per lane
    const auto lanes = static_cast<double>(p_.rows * ((p_.width + 31) / 32 * 32));
    const auto counting = static_cast<double>(32 * p_.rows) * kCounted;
    return indptr_cost(p_.rows) + (counting + lanes * kMoved) * kShuffleCost;
  }
  double checked_factor() const override { return 4; }

 private:
  // Exact fill: all entries are in range. Real: one in five is -1. Adversarial: most are at or
  // beyond an end of the range.
  std::int32_t index(const Step& step, std::int64_t place) const {
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    const std::int64_t range = p_.num_rows > 0 ? p_.num_rows : 1 << 20;
    const std::uint64_t bits = random_bits(mix(step.seed, 1), place);
    const auto inside = static_cast<std::int32_t>(static_cast<std::int64_t>(bits >> 33) % range);
    if (step.fill == Fill::exact) return static_cast<std::int32_t>(place % range);
    if (step.fill == Fill::real) return bits % 5 == 0 ? -1 : inside;
    const auto end = static_cast<std::int32_t>(p_.num_rows >= 0 ? p_.num_rows : kMost);
    const std::int32_t edges[] = {-1, 0, end - 1, end, kMost, -kMost - 1, -2, inside};
    return edges[bits % std::size(edges)];
  }

  // Adversarial lengths are also beyond the width and below 0, since the op has to clamp them. They
  // are close to these limits, so that a kernel that does not clamp writes to places that are
  // checked.
  void fill_lengths(const Step& step, std::int32_t* lengths) const {
    const std::vector<std::int64_t> inside = live_lengths(step, p_.rows, step.live, p_.width);
    const auto width = static_cast<std::int32_t>(p_.width);
    const std::int32_t beyond[] = {width + 1, -1, width + 7, -9};
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const std::uint64_t bits = random_bits(mix(step.seed, 2), row);
      const bool outside = step.fill == Fill::adversarial && bits % 2 == 0;
      lengths[row] = outside ? beyond[bits / 2 % 4] : static_cast<std::int32_t>(inside[row]);
      if (row < step.live) continue;
      const bool negative = step.dead_rows == DeadRows::nan || step.dead_rows == DeadRows::huge;
      lengths[row] = negative ? -1 : 0;
    }
  }

  void place(TensorSpec& spec) const override {
    if (!far_ || spec.name != "indices") return;
    spec.sparse = true;
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      spec.placement.push_back(row * (kFarStride / p_.width));
    }
  }

  std::int64_t gap_;
  bool far_;
};

}  // namespace build_ragged_indices_from_dense_cases

OpDefinition define_build_ragged_indices_from_dense() {
  using namespace build_ragged_indices_from_dense_cases;
  OpDefinition op;
  op.name = "build_ragged_indices_from_dense";
  op.summary = "prefixes of the rows of a dense table as one ragged list";
  op.parameters = {
      {"rows", 5, 0, 65536, "padded rows"},
      {"width", 128, 0, 65536, "columns of the dense table"},
      {"row_gap", 0, 0, 65536, "elements between two rows"},
      {"num_rows", -1, -1, std::int64_t{1} << 31, "entries from here on are holes; -1: none"},
      {"far", 0, 0, 1, "rows 2^30 elements apart"}};
  op.choices = {kHoles};
  op.make_problem = make_problem_of<BuildRaggedProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
