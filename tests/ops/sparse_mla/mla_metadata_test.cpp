// SPDX-License-Identifier: Apache-2.0
//
// Tests the check of get_mla_metadata_v1: it accepts the plans of several planners, and each
// promise has a plan that breaks it alone. Also the text of a report, addresses, and what the
// launcher refuses.
#include <gtest/gtest.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "device/device.h"
#include "reference/sparse_mla/get_mla_metadata_v1.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry get_mla_metadata_v1();
}  // namespace plumb::device::kernels

namespace plumb::cases {

OpDefinition define_get_mla_metadata_v1();

namespace mla_metadata_test {

using reference::MlaBuffer;
using reference::MlaMetadata;
using reference::MlaPlanShape;
using reference::MlaWorkItem;
using Kind = reference::MlaDefectKind;

MlaPlanShape random_shape(std::uint64_t seed) {
  MlaPlanShape shape{.kv_indptr = {0}, .ratio = integer(seed, 0, 1, 3)};
  const std::int64_t batch = integer(seed, 1, 1, 20), most = seed % 4 == 0 ? 1000 : 40;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t length = std::max<std::int64_t>(integer(seed, 10 + i, -5, most), 0);
    shape.kv_indptr.push_back(shape.kv_indptr.back() + length);
  }
  shape.max_rows = shape.rows() + integer(seed, 2, 0, 3);
  shape.num_cu = integer(seed, 3, 1, 30);
  return shape;
}

TEST(MlaMetadata, AitersPlansAreRight) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const MlaPlanShape shape = random_shape(seed);
    for (const std::int64_t max_split : {-1, 1, 2, 7}) {
      const MlaMetadata plan = make_mla_metadata(shape, max_split);
      ASSERT_TRUE(check_mla_metadata(plan, shape).empty()) << seed << ", " << max_split;
    }
  }
}

// Another planner: it cuts rows anywhere, deals the items out to compute units from the last row
// to the first, and numbers the partials of later rows first.
MlaMetadata backward_plan(const MlaPlanShape& shape, std::uint64_t seed) {
  MlaMetadata plan = make_mla_metadata(shape, -1);
  std::fill(plan.final_queries.begin(), plan.final_queries.end(), std::array{-1, -2});
  std::int64_t cuts = std::min(shape.num_cu - 1, shape.most_partials() / 2);
  std::vector<MlaWorkItem> items;
  std::vector<std::vector<std::int32_t>> slots(static_cast<std::size_t>(shape.max_rows));
  std::int32_t partials = 0;
  for (auto row = static_cast<std::int32_t>(shape.rows() - 1); row >= 0; --row) {
    const auto begin = static_cast<std::int32_t>(shape.begin(row));
    const auto end = static_cast<std::int32_t>(shape.end(row));
    std::vector<std::int32_t> edges{begin, end};
    if (cuts > 0 && end - begin > 1) {
      edges.insert(edges.begin() + 1,
                   static_cast<std::int32_t>(integer(seed, row, begin + 1, end - 1)));
      --cuts;
    }
    for (std::size_t i = edges.size() - 1; i > 0; --i) {
      const std::int32_t partial = edges.size() > 2 ? partials++ : -1;
      if (partial >= 0) slots[static_cast<std::size_t>(row)].push_back(partial);
      items.push_back({row, partial, row, row + 1, edges[i - 1], edges[i], end - edges[i]});
    }
  }
  std::int32_t listed = 0;
  for (std::size_t row = 0; row < slots.size(); ++row) {
    for (const std::int32_t slot : slots[row]) {
      plan.partials[static_cast<std::size_t>(listed++)] = slot;
      plan.final_queries[row] = {static_cast<std::int32_t>(row),
                                 static_cast<std::int32_t>(row + 1)};
    }
    plan.reduce_indptr[row + 1] = listed;
  }
  std::copy(items.begin(), items.end(), plan.items.begin());
  for (std::int64_t unit = 0; unit <= shape.num_cu; ++unit) {
    plan.work_indptr[static_cast<std::size_t>(unit)] =
        static_cast<std::int32_t>(std::ssize(items) * unit / shape.num_cu);
  }
  return plan;
}

TEST(MlaMetadata, AnotherPlannersPlansAreRight) {
  int split = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const MlaPlanShape shape = random_shape(seed);
    const MlaMetadata plan = backward_plan(shape, seed);
    ASSERT_TRUE(check_mla_metadata(plan, shape).empty()) << seed;
    split += plan.reduce_indptr.back() > 2;
  }
  EXPECT_GT(split, 500);
}

// Rows of 20, 0, 100 and 30 keys, and room for a fifth row. The third row is in three items.
class MlaMetadataPromise : public ::testing::Test {
 protected:
  using Change = std::function<void(MlaMetadata&)>;

  MlaMetadataPromise() {
    plan.work_indptr = {0, 3, 4, 5, 6};
    plan.items = {{0, -1, 0, 1, 0, 20, 0},   {1, -1, 1, 2, 20, 20, 0},  {2, 0, 2, 3, 20, 52, 68},
                  {2, 1, 2, 3, 52, 100, 20}, {2, 2, 2, 3, 100, 120, 0}, {3, -1, 3, 4, 120, 150, 0}};
    plan.items.resize(8, {-9, -9, -9, -9, -9, -9, -9});
    plan.reduce_indptr = {0, 0, 0, 3, 3, 3};
    plan.final_queries = {{-7, -7}, {-7, -7}, {2, 3}, {-7, -7}, {-7, -7}};
    plan.partials = {0, 1, 2, -7, -7, -7};
  }

  // The only kind of defect that the changed plan has; its buffer must be this one.
  void expect_only(MlaBuffer buffer, Kind kind, const Change& change) {
    MlaMetadata changed = plan;
    change(changed);
    const auto found = check_mla_metadata(changed, shape);
    ASSERT_FALSE(found.empty()) << static_cast<int>(kind);
    for (const auto& defect : found) {
      EXPECT_EQ(defect.kind, kind) << static_cast<int>(defect.kind);
      EXPECT_EQ(defect.buffer, buffer) << static_cast<int>(kind);
    }
  }

  MlaPlanShape shape{{0, 20, 20, 120, 150}, 1, 5, 4};
  MlaMetadata plan;
};

TEST_F(MlaMetadataPromise, TheUnchangedPlanKeepsAll) {
  EXPECT_TRUE(check_mla_metadata(plan, shape).empty());
  // In another order of items and partials, too.
  std::swap(plan.items[0], plan.items[5]);
  std::swap(plan.items[2].partial, plan.items[4].partial);
  EXPECT_TRUE(check_mla_metadata(plan, shape).empty());
}

TEST_F(MlaMetadataPromise, EachKeyIsInOneItem) {
  const MlaBuffer items = MlaBuffer::work_info_set;
  expect_only(items, Kind::missing, [](MlaMetadata& p) { p.items[3].begin = 60; });
  expect_only(items, Kind::missing, [](MlaMetadata& p) { --p.work_indptr.back(); });
  expect_only(items, Kind::twice, [](MlaMetadata& p) { p.items[3].begin = 36; });
  expect_only(items, Kind::twice, [](MlaMetadata& p) { p.items[4].begin = 99; });
}

TEST_F(MlaMetadataPromise, AnEmptyRowHasOneItem) {
  const MlaBuffer items = MlaBuffer::work_info_set;
  const auto without = [](MlaMetadata& p) {
    p.items.erase(p.items.begin() + 1);
    p.items.push_back({});
    for (std::size_t unit = 1; unit < p.work_indptr.size(); ++unit) --p.work_indptr[unit];
  };
  expect_only(items, Kind::missing, without);
  MlaMetadata twice = plan;
  twice.items[6] = twice.items[1];
  ++twice.work_indptr.back();
  const auto found = check_mla_metadata(twice, shape);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                          [](const auto& defect) { return defect.kind == Kind::twice; }));
}

TEST_F(MlaMetadataPromise, ItemsHaveKeysAndQueriesOfTheirRow) {
  const MlaBuffer items = MlaBuffer::work_info_set;
  expect_only(items, Kind::query, [](MlaMetadata& p) { p.items[5].first_query = 2; });
  expect_only(items, Kind::query, [](MlaMetadata& p) { p.items[5].last_query = 5; });
  expect_only(items, Kind::behind, [](MlaMetadata& p) { p.items[3].behind = 0; });
  const auto extra = [this](const MlaWorkItem& item, Kind kind) {
    expect_only(MlaBuffer::work_info_set, kind, [&](MlaMetadata& p) {
      p.items[6] = item;
      ++p.work_indptr.back();
    });
  };
  extra({4, -1, 4, 5, 150, 150, 0}, Kind::no_row);
  extra({-1, -1, -1, 0, 0, 0, 0}, Kind::no_row);
  extra({3, -1, 3, 4, 150, 160, 0}, Kind::no_keys);
  extra({3, -1, 3, 4, 119, 121, 29}, Kind::no_keys);
  extra({3, -1, 3, 4, 130, 130, 20}, Kind::no_keys);
}

TEST_F(MlaMetadataPromise, PartialsAreUsedOnceAndExist) {
  const MlaBuffer items = MlaBuffer::work_info_set;
  expect_only(items, Kind::lone_partial, [](MlaMetadata& p) { p.items[5].partial = 3; });
  const auto has = [this](Kind kind, const Change& change) {
    MlaMetadata changed = plan;
    change(changed);
    const auto found = check_mla_metadata(changed, shape);
    return std::any_of(found.begin(), found.end(),
                       [kind](const auto& defect) { return defect.kind == kind; });
  };
  EXPECT_TRUE(has(Kind::whole, [](MlaMetadata& p) { p.items[3].partial = -1; }));
  EXPECT_TRUE(has(Kind::slot_twice, [](MlaMetadata& p) { p.items[3].partial = 0; }));
  EXPECT_TRUE(has(Kind::no_slot, [](MlaMetadata& p) { p.items[3].partial = 6; }));
  EXPECT_TRUE(has(Kind::no_slot, [](MlaMetadata& p) { p.items[3].partial = -2; }));
  expect_only(items, Kind::scattered,
              [](MlaMetadata& p) { p.items[4].partial = p.partials[2] = 4; });
}

TEST_F(MlaMetadataPromise, TheReductionNamesThePartialsOfItsRow) {
  expect_only(MlaBuffer::partial_map, Kind::listed, [](MlaMetadata& p) { p.partials[1] = 5; });
  expect_only(MlaBuffer::partial_map, Kind::listed,
              [](MlaMetadata& p) { std::swap(p.partials[0], p.partials[1]); });
  expect_only(MlaBuffer::final_map, Kind::final_row,
              [](MlaMetadata& p) { p.final_queries[2] = {1, 2}; });
  expect_only(MlaBuffer::final_map, Kind::final_row,
              [](MlaMetadata& p) { p.final_queries[2] = {2, 4}; });
  const MlaBuffer lists = MlaBuffer::reduce_indptr;
  expect_only(lists, Kind::count, [](MlaMetadata& p) { p.reduce_indptr = {0, 0, 0, 2, 2, 2}; });
  expect_only(lists, Kind::count, [](MlaMetadata& p) { p.reduce_indptr = {0, 0, 0, 3, 3, 4}; });
}

TEST_F(MlaMetadataPromise, EntriesStayInsideTheBuffers) {
  for (const auto buffer : {MlaBuffer::work_indptr, MlaBuffer::reduce_indptr}) {
    const auto entries = [buffer](MlaMetadata& p) -> std::vector<std::int32_t>& {
      return buffer == MlaBuffer::work_indptr ? p.work_indptr : p.reduce_indptr;
    };
    expect_only(buffer, Kind::start, [&](MlaMetadata& p) { entries(p)[0] = -1; });
    expect_only(buffer, Kind::too_far, [&](MlaMetadata& p) { entries(p).back() = 9; });
    expect_only(buffer, Kind::backwards, [&](MlaMetadata& p) { entries(p).back() = 0; });
  }
}

// The same rows as a call. Without a launch, addresses have no numbers and are not judged.
class MlaMetadataVerdict : public MlaMetadataPromise {
 protected:
  MlaMetadataVerdict()
      : op(define_get_mla_metadata_v1()),
        problem(op.make_problem(
            row_of(op, {{"batch", 4}, {"spare_rows", 1}, {"num_cu", 4}, {"length", 100}}), {})),
        tensors(problem->make_tensors()) {
    store("kv_indptr", {0, 20, 20, 120, 150});
  }
  void store(const char* name, const std::vector<std::int32_t>& numbers) {
    std::copy(numbers.begin(), numbers.end(), tensors.at(name).data<std::int32_t>());
  }
  std::string said() {
    store("work_indptr", plan.work_indptr);
    store("reduce_indptr", plan.reduce_indptr);
    store("reduce_partial_map", plan.partials);
    auto* item = tensors.at("work_info_set").data<std::int32_t>();
    for (const MlaWorkItem& i : plan.items) {
      for (const std::int32_t number :
           {i.row, i.partial, i.first_query, i.last_query, i.begin, i.end, i.behind, 77}) {
        *item++ = number;
      }
    }
    auto* queries = tensors.at("reduce_final_map").data<std::int32_t>();
    for (const auto& [first, last] : plan.final_queries) {
      *queries++ = first;
      *queries++ = last;
    }
    for (const TensorReport& report : problem->judge({}, tensors, {}, {})) {
      if (!report.passed()) return report.failures.front();
    }
    return "passed";
  }

  OpDefinition op;
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
};

TEST_F(MlaMetadataVerdict, NamesTheRowAndTheKeys) {
  EXPECT_EQ(said(), "passed");
  plan.items[3].begin = 60;
  EXPECT_EQ(said(), "work_info_set: row 2 (keys [20, 120)): keys [52, 60) are in no item");
  plan.items[3].begin = 40;
  EXPECT_EQ(said(), "work_info_set: row 2 (keys [20, 120)): keys from 40 on are in items 2 and 3");
  plan.items[3].begin = 52;
  plan.partials[1] = 7;
  EXPECT_EQ(said(),
            "reduce_partial_map: entry 1 is partial 7, not partial 1 of row 2 (keys [20, 120))");
  plan.partials[1] = 1;
  plan.reduce_indptr.back() = 4;
  EXPECT_EQ(said(), "reduce_indptr: row 4: the list has length 1, and the items write 0 partials");
}

TEST(MlaMetadataAddresses, AreNumbersOfTheirTensors) {
  const OpDefinition op = define_get_mla_metadata_v1();
  const TensorSet tensors = op.make_problem(row_of(op, {}), {})->make_tensors();
  EXPECT_EQ(tensors.at("work_metadata_ptrs").spec().format, kAddressFormat);
  EXPECT_EQ(tensors.all()[address_number(tensors, "work_indptr") - 1].spec().name, "work_indptr");
  EXPECT_THROW(address_number(tensors, "work"), std::out_of_range);
}

TEST(MlaMetadataKernel, RefusesWhatTheContractForbids) {
  using P = plumb_get_mla_metadata_v1_params;
  const auto device = device::open_device("sim-gfx942");
  const device::OpEntry entry = device::kernels::get_mla_metadata_v1();
  std::int32_t indptr[3] = {0, 20, 30}, work[3], items[3 * 8], lists[3], queries[4], partials[2];
  std::int64_t addresses[2];
  const auto status = [&](auto change) {
    P p{.struct_size = sizeof p,
        .kv_indptr = indptr,
        .work_metadata_ptrs = addresses,
        .work_indptr = work,
        .work_info_set = items,
        .reduce_indptr = lists,
        .reduce_final_map = queries,
        .reduce_partial_map = partials,
        .batch = 2,
        .qk_batch_ratio = 1,
        .max_rows = 2,
        .num_cu = 2,
        .max_split_per_batch = -1,
        .stream = device->create_stream()};
    change(p);
    return entry.launch(&p);
  };
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  for (void (*spoil)(P&) :
       {+[](P& p) { p.batch = 0; }, +[](P& p) { p.qk_batch_ratio = 0; },
        +[](P& p) { p.max_rows = 1; }, +[](P& p) { p.num_cu = 0; },
        +[](P& p) { p.max_split_per_batch = 0; }, +[](P& p) { p.kv_indptr = nullptr; },
        +[](P& p) { p.work_metadata_ptrs = nullptr; }, +[](P& p) { p.work_indptr = nullptr; },
        +[](P& p) { p.work_info_set = nullptr; }, +[](P& p) { p.reduce_indptr = nullptr; },
        +[](P& p) { p.reduce_final_map = nullptr; },
        +[](P& p) { p.reduce_partial_map = nullptr; }}) {
    EXPECT_EQ(status(spoil), PLUMB_INVALID_ARGUMENT);
  }
  EXPECT_EQ(entry.launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

}  // namespace mla_metadata_test
}  // namespace plumb::cases
