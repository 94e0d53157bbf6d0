// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/paged_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "cases/ops/sparse_mla/mla_judge.h"
#include "decode/metadata/v32_metadata.h"

namespace plumb::cases {

namespace {

using device::decode::Engine;
using device::decode::Geometry;
using device::decode::StepPlan;
using Integers = std::vector<std::int32_t>;

Integers read(const Engine& engine, device::Device& device, std::string_view label) {
  const auto& blocks = engine.memory().blocks();
  const auto found = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const auto& block) { return block.label == label; });
  if (found == blocks.end()) throw std::logic_error("there is no " + std::string(label));
  Integers values(found->bytes / sizeof(std::int32_t));
  device.copy(values.data(), found->address, found->bytes, engine.stream());
  return values;
}

// Right contents for this step: the request of each token, and the prefix sums of its entries.
struct Expected {
  Integers ids, indptr;
};

Expected expected_of(const Geometry& g, const StepPlan& plan) {
  Expected expected{{}, {0}};
  for (std::size_t r = 0; r < plan.seq_lens.size(); ++r) {
    const std::int32_t queries = plan.query_start_loc[r + 1] - plan.query_start_loc[r];
    for (std::int32_t i = 1; i <= queries; ++i) {
      const std::int32_t seen = plan.seq_lens[r] - queries + i;
      expected.ids.push_back(static_cast<std::int32_t>(r));
      expected.indptr.push_back(expected.indptr.back() +
                                std::min(seen, static_cast<std::int32_t>(g.top_k)));
    }
  }
  const auto tokens = static_cast<std::size_t>(g.max_tokens());
  expected.ids.resize(tokens, 0);
  expected.indptr.resize(tokens + 1, expected.indptr.back());
  return expected;
}

using IsRightEntry = std::function<bool(std::size_t, std::int32_t)>;

// A line about the first wrong entry; nullopt if all are right.
std::optional<std::string> first_wrong(std::string_view name, const Integers& values,
                                       const IsRightEntry& is_right) {
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = values.size(); i-- > 0;) {
    if (is_right(i, values[i])) continue;
    ++wrong;
    first = i;
  }
  if (wrong == 0) return std::nullopt;
  return fmt::format("{}: {} of {} entries are wrong, the first is entry {}, which holds {}", name,
                     wrong, values.size(), first, values[first]);
}

TensorSet plan_tensors(const Engine& engine, device::Device& device, std::int64_t rows) {
  TensorSet tensors;
  tensors.add({"tiles", Dtype::i32, {engine.geometry().plan_parts, kTileFields}});
  tensors.add({"num_splits", Dtype::i32, {rows + 1}});
  for (const char* name : {"tiles", "num_splits"}) {
    const Integers values = read(engine, device, name);
    std::copy_n(values.begin(), tensors.at(name).elements(), tensors.at(name).data<std::int32_t>());
  }
  return tensors;
}

// Compares the tile plan on the device with the plan for this step.
void check_plan(const Engine& engine, device::Device& device, const Integers& indptr,
                std::vector<WrongBuffer>& wrong) {
  const std::int64_t rows = engine.plan().attended;
  std::vector<reference::RequestBlocks> blocks;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    blocks.push_back(reference::request_blocks(indptr[row + 1] - indptr[row], false, 0,
                                               device::decode::kPlanGranularity));
  }
  const auto parts = static_cast<std::int32_t>(engine.geometry().plan_parts);
  const auto plan = reference::make_tile_plan(blocks, parts, device::decode::kPlanOverhead);
  const TensorSet stored = plan_tensors(engine, device, rows);
  for (const TensorReport& report : compare(expect_tile_plan(stored, plan, rows))) {
    if (!report.passed())
      wrong.push_back({"get_decoding_sched_meta", "attention plan", report.failures.front()});
  }
}

}  // namespace

std::vector<WrongBuffer> wrong_paged_buffers(const Engine& engine, device::Device& device) {
  if (engine.plan().attended == 0) return {};  // no kernel reads the buffers
  const Geometry& g = engine.geometry();
  const Expected expected = expected_of(g, engine.plan());
  const auto entries = static_cast<std::size_t>(expected.indptr.back());
  const std::int64_t slots = g.blocks(device::decode::Cache::window) * g.pages[0];
  std::vector<WrongBuffer> wrong;
  const auto check = [&](const char* label, const IsRightEntry& is_right) {
    const auto line = first_wrong(label, read(engine, device, label), is_right);
    if (line) wrong.push_back({"v32_paged_metadata", "paged metadata", *line});
  };
  check("req_id_per_token",
        [&](std::size_t i, std::int32_t id) { return id == expected.ids.at(i); });
  check("paged_kv_indptr",
        [&](std::size_t i, std::int32_t end) { return end == expected.indptr.at(i); });
  check("paged_kv_indices", [&](std::size_t i, std::int32_t slot) {
    return i < entries ? slot >= 0 && slot < slots : slot == 0;
  });
  check("qo_indptr",
        [](std::size_t i, std::int32_t at) { return at == static_cast<std::int32_t>(i); });
  check("paged_kv_last_page_len", [](std::size_t, std::int32_t length) { return length == 1; });
  if (!engine.chooses("sparse_mla_decode", "plan=none")) {
    check_plan(engine, device, expected.indptr, wrong);
  }
  return wrong;
}

}  // namespace plumb::cases
