// SPDX-License-Identifier: Apache-2.0
//
// Cases of get_mla_metadata_v1. Any division of the keys is right, so the verdict tests what a plan
// promises to the decode kernel and to the reduction. The six outputs are one plan: they are
// checked together, and each report has the defects of its own buffer.
#include "reference/sparse_mla/get_mla_metadata_v1.h"

#include <fmt/format.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/judge/right_values.h"
#include "cases/ops/sparse_mla/plan_defects.h"
#include "cases/ops/sparse_mla/planned_lengths.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace get_mla_metadata_v1_cases {

using reference::MlaBuffer;
using reference::MlaDefect;
using reference::MlaMetadata;
using reference::MlaPlanShape;
using reference::MlaWorkItem;
using Kind = reference::MlaDefectKind;

using P = plumb_get_mla_metadata_v1_params;

constexpr std::int64_t kItemInts = 8;  // int32 of an item; the last is padding
constexpr std::int64_t kKeysPerBlock = 16;
constexpr std::string_view kAddressed[] = {"work_indptr", "work_info_set"};
constexpr std::string_view kBuffers[] = {"work_indptr", "work_info_set", "reduce_indptr",
                                         "reduce_final_map", "reduce_partial_map"};

Formula members(TablePart<P>& t) {
  const Formula batch = t.scalar("batch", &P::batch);
  const Formula ratio = t.scalar("qk_batch_ratio", &P::qk_batch_ratio);
  const Formula rows =
      t.scalar("max_rows", &P::max_rows, (batch + parameter("spare_rows")) * ratio);
  const Formula units = t.scalar("num_cu", &P::num_cu), items = rows + units - 1;
  t.scalar("max_split_per_batch", &P::max_split_per_batch);
  t.input("kv_indptr", &P::kv_indptr, {batch + 1, 1}, "first key of each row");
  t.output("work_metadata_ptrs", &P::work_metadata_ptrs, {2, 1}, "of work_indptr, work_info_set")
      .addresses();
  t.output("work_indptr", &P::work_indptr, {units + 1, 1}, "first item of each compute unit");
  t.output("work_info_set", &P::work_info_set, {items, kItemInts}, "row, partial and keys");
  t.output("reduce_indptr", &P::reduce_indptr, {rows + 1, 1}, "first partial of each row");
  t.output("reduce_final_map", &P::reduce_final_map, {rows, 2}, "queries of each split row");
  t.output("reduce_partial_map", &P::reduce_partial_map, {least(items, 2 * (units - 1)), 1},
           "partials of split rows");
  return batch;
}

std::vector<std::int32_t> list_of(const HostTensor& stored) { return packed<std::int32_t>(stored); }

MlaMetadata plan_of(const TensorSet& tensors) {
  MlaMetadata plan{.work_indptr = list_of(tensors.at("work_indptr")),
                   .reduce_indptr = list_of(tensors.at("reduce_indptr")),
                   .partials = list_of(tensors.at("reduce_partial_map"))};
  const HostTensor& items = tensors.at("work_info_set");
  for (std::int64_t i = 0; i < items.rows(); ++i) {
    const auto* item = items.row<std::int32_t>(i);
    plan.items.push_back({item[0], item[1], item[2], item[3], item[4], item[5], item[6]});
  }
  const HostTensor& queries = tensors.at("reduce_final_map");
  for (std::int64_t i = 0; i < queries.rows(); ++i) {
    plan.final_queries.push_back(
        {queries.row<std::int32_t>(i)[0], queries.row<std::int32_t>(i)[1]});
  }
  return plan;
}

std::int32_t number_in(const MlaMetadata& plan, MlaBuffer buffer, std::int64_t row,
                       std::int64_t column) {
  const auto place = static_cast<std::size_t>(row);
  switch (buffer) {
    case MlaBuffer::work_indptr: return plan.work_indptr[place];
    case MlaBuffer::work_info_set: {
      const MlaWorkItem& item = plan.items[place];
      const std::int32_t numbers[] = {item.row,   item.partial, item.first_query, item.last_query,
                                      item.begin, item.end,     item.behind,      0};
      return numbers[column];
    }
    case MlaBuffer::reduce_indptr: return plan.reduce_indptr[place];
    case MlaBuffer::final_map: return plan.final_queries[place][static_cast<std::size_t>(column)];
    case MlaBuffer::partial_map: return plan.partials[place];
  }
  return 0;
}

// The columns of each row of a buffer that its readers read. Counts of a wrong plan may be
// anything.
ColumnRanges read_columns(const MlaMetadata& plan, MlaBuffer buffer) {
  ColumnRanges ranges;
  const auto front = [&](std::size_t rows, std::int64_t count, std::int64_t columns) {
    for (std::size_t i = 0; i < rows; ++i) {
      ranges.push_back({0, static_cast<std::int64_t>(i) < count ? columns : 0});
    }
  };
  if (buffer == MlaBuffer::work_info_set) {
    front(plan.items.size(), plan.work_indptr.back(), kItemInts - 1);
  }
  if (buffer == MlaBuffer::partial_map) front(plan.partials.size(), plan.reduce_indptr.back(), 1);
  if (buffer == MlaBuffer::final_map) {
    for (std::size_t i = 0; i < plan.final_queries.size(); ++i) {
      ranges.push_back({0, plan.reduce_indptr[i] < plan.reduce_indptr[i + 1] ? 2 : 0});
    }
  }
  return ranges;
}

// "row 3 (keys [40, 72))"
std::string row_text(const MlaPlanShape& shape, std::int64_t row) {
  return fmt::format("row {} (keys [{}, {}))", row, shape.begin(row), shape.end(row));
}

std::string text_of(const MlaPlanShape& shape, const MlaDefect& d) {
  const bool exists = d.row >= 0 && d.row < shape.rows();
  const std::string row = exists ? row_text(shape, d.row) : fmt::format("row {}", d.row);
  switch (d.kind) {
    case Kind::start: return fmt::format("begins with {} and not with 0", d.begin);
    case Kind::backwards:
      return fmt::format("entry {} is {}, and entry {} is {}", d.entry, d.begin, d.entry - 1,
                         d.end);
    case Kind::too_far:
      return fmt::format("entry {} is {}, and the buffer has {} entries", d.entry, d.begin, d.end);
    case Kind::no_row:
      return fmt::format("item {} is of row {}, and the batch has {}", d.entry, d.row,
                         shape.rows());
    case Kind::query:
      return fmt::format("item {} is of {} and has the queries [{}, {})", d.entry, row, d.begin,
                         d.end);
    case Kind::no_keys:
      return fmt::format("item {} is of {} and has the keys [{}, {})", d.entry, row, d.begin,
                         d.end);
    case Kind::behind:
      return fmt::format("item {} is of {} and says that {} keys are behind it, not {}", d.entry,
                         row, d.begin, d.end);
    case Kind::missing:
      if (d.begin == d.end) return row + " has no item";
      return fmt::format("{}: keys [{}, {}) are in no item", row, d.begin, d.end);
    case Kind::twice:
      return fmt::format("{}: keys from {} on are in items {} and {}", row, d.begin, d.other,
                         d.entry);
    case Kind::whole:
      return fmt::format("{}: item {} says that it has all keys, and other items have some", row,
                         d.entry);
    case Kind::lone_partial:
      return fmt::format("{}: item {} has all keys and writes partial {}", row, d.entry, d.begin);
    case Kind::no_slot:
      return fmt::format("{}: item {} writes partial {}, and there are {}", row, d.entry, d.begin,
                         d.end);
    case Kind::slot_twice:
      return fmt::format("{}: items {} and {} write partial {}", row, d.other, d.entry, d.begin);
    case Kind::scattered:
      return fmt::format("{}: its partials lie scattered in [{}, {})", row, d.begin, d.end);
    case Kind::count:
      return fmt::format("{}: the list has length {}, and the items write {} partials", row,
                         d.begin, d.end);
    case Kind::final_row:
      return fmt::format("{} is reduced to the queries [{}, {})", row, d.begin, d.end);
    case Kind::listed:
      return fmt::format("entry {} is partial {}, not partial {} of {}", d.entry, d.begin, d.end,
                         row);
  }
  return "";
}

// A wrong row of a tensor. row < 0: the defect is of no stored row.
// The part of a plan that is in one buffer. `right`: the stored plan if it is right, else plumb's.
class MlaPlanTruth final : public Truth {
 public:
  MlaPlanTruth(MlaBuffer buffer, std::vector<PlanDefect> defects,
               std::shared_ptr<const MlaMetadata> right)
      : buffer_(buffer), defects_(std::move(defects)), right_(std::move(right)) {}

  TensorReport compare(const HostTensor& stored, const RowMask&,
                       const ColumnRanges& columns) const override {
    TensorReport report{.tensor = stored.spec().name, .rows_total = stored.rows()};
    std::int64_t zeros = 0;
    for (std::int64_t row = 0; row < stored.rows(); ++row) {
      const ColumnRange range = columns_of(columns, stored, row);
      const auto* own = stored.row<std::int32_t>(row);
      report.rows_compared += range.begin < range.end;
      report.elements_compared += range.end - range.begin;
      zeros += std::count(own + range.begin, own + range.end, 0);
    }
    if (report.elements_compared > 0) {
      report.zero_share =
          static_cast<double>(zeros) / static_cast<double>(report.elements_compared);
    }
    report.observability = 1 - report.zero_share;
    if (!defects_.empty()) report_defects(stored, defects_, "entries", report);
    return report;
  }
  void put(const HostTensor& stored, const RowMask&, const ColumnRanges&,
           RightValues& values) const override {
    values.put(stored, {}, read_columns(*right_, buffer_),
               [&](std::int64_t row, std::int64_t column) {
                 return static_cast<std::uint32_t>(number_in(*right_, buffer_, row, column));
               });
  }

 private:
  MlaBuffer buffer_;
  std::vector<PlanDefect> defects_;
  std::shared_ptr<const MlaMetadata> right_;
};

class MlaMetadataProblem final : public TableProblem<P> {
 public:
  MlaMetadataProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        length_(row.integer("length")),
        lengths_(row.word("lengths")) {
    if (p_.max_split_per_batch == 0) throw BadRow(row.where + ": max_split_per_batch is 0");
    if (p_.batch * length_ >= std::int64_t{1} << 31 && lengths_ != "one_long") {
      throw BadRow(row.where + ": more keys than an int32 counts");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const PlannedLengths planned{lengths_, length_, kKeysPerBlock, mix(step.seed, 1)};
    fill_planned_indptr(planned, step, tensors.at("kv_indptr"));
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const MlaPlanShape shape = shape_of(tensors);
    auto right = std::make_shared<MlaMetadata>(plan_of(tensors));
    const std::vector<MlaDefect> defects = check_mla_metadata(*right, shape);
    Expectations expected;
    // Only results of a launch have numbers in place of addresses.
    const HostTensor& addresses = tensors.at("work_metadata_ptrs");
    if (addresses.spec().clues != nullptr) {
      std::vector<std::int64_t> numbers;
      for (const auto name : kAddressed) numbers.push_back(address_number(tensors, name));
      expected.push_back(expect_exact(addresses, std::move(numbers), {}));
    }
    for (std::size_t i = 0; i < std::size(kBuffers); ++i) {
      const auto buffer = static_cast<MlaBuffer>(i);
      std::vector<PlanDefect> own;
      for (const MlaDefect& defect : defects) {
        if (defect.buffer == buffer) own.push_back({defect.entry, text_of(shape, defect)});
      }
      const HostTensor& stored = tensors.at(kBuffers[i]);
      expected.push_back({std::make_shared<const HostTensor>(stored.alias()),
                          std::make_shared<const MlaPlanTruth>(buffer, std::move(own), right),
                          {},
                          read_columns(*right, buffer)});
    }
    if (!defects.empty()) *right = make_mla_metadata(shape, p_.max_split_per_batch);
    return expected;
  }

  // Entries behind the counts, ranges of rows without partials and padding are not read.
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override {
    const auto* const found = std::find(std::begin(kBuffers), std::end(kBuffers), spec.name);
    if (found == std::end(kBuffers)) return {};
    return read_columns(plan_of(tensors), static_cast<MlaBuffer>(found - std::begin(kBuffers)));
  }

  double cost() const override {
    constexpr double kRow = 60, kUnit = 30;
    return 2000 + kRow * static_cast<double>(p_.max_rows) + kUnit * static_cast<double>(p_.num_cu);
  }
  double checked_factor() const override { return 20; }

 private:
  MlaPlanShape shape_of(const TensorSet& tensors) const {
    MlaPlanShape shape{{}, p_.qk_batch_ratio, p_.max_rows, p_.num_cu};
    for (const std::int32_t first : list_of(tensors.at("kv_indptr"))) {
      const bool falls = !shape.kv_indptr.empty() && first < shape.kv_indptr.back();
      if (falls || (shape.kv_indptr.empty() && first != 0)) {
        throw BadRow(fmt::format("kv_indptr: entry {} is {}: it begins with 0 and never falls",
                                 shape.kv_indptr.size(), first));
      }
      shape.kv_indptr.push_back(first);
    }
    return shape;
  }

  std::int64_t length_;
  std::string lengths_;
};

}  // namespace get_mla_metadata_v1_cases

OpDefinition define_get_mla_metadata_v1() {
  using namespace get_mla_metadata_v1_cases;
  OpDefinition op;
  op.name = "get_mla_metadata_v1";
  op.summary = "V3.2 on ROCm: which compute unit attends to which keys, and what is reduced";
  op.parameters = {
      {"batch", 4, 1, 65536, "padded tokens"},
      {"qk_batch_ratio", 1, 1, 64, "groups of 16 heads, each a row of the plan"},
      {"spare_rows", 0, 0, 65536, "tokens that the buffers have room for beyond batch"},
      {"num_cu", 304, 1, 4096, "compute units of the decode kernel"},
      {"max_split_per_batch", -1, -1, 4096, "items of a row on average; -1: no limit"},
      {"length", 2048, 0, 1 << 24, "most keys of a row"}};
  op.word_parameters = {{"lengths",
                         {"full", "random", "borders", "one_long", "zeros"},
                         "of the rows: length, any, around blocks of 16, one of length among ones, "
                         "zeros among any"}};
  op.make_problem = make_problem_of<MlaMetadataProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
