// SPDX-License-Identifier: Apache-2.0
//
// plumb's sparse MLA kernels on simulated platforms: right on waves of 32 and 64 for every fill and
// any number of parts, the same bits in every order of threads, planned by the first call only.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define PLUMB_KERNEL_SET sparse_mla_test_kernels
#include "cases/problem.h"
#include "device/device.h"
#include "device/kernels/fp8.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e8m0.h"

namespace plumb::device::kernels {
plumb_op_entry sparse_mla_decode();
}
namespace plumb::device::checked_kernels {
plumb_op_entry sparse_mla_decode();
}
namespace plumb::cases {
OpDefinition define_sparse_mla_decode();
}

namespace plumb::cases {
namespace {

using device::Conditions;
using device::Device;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

using Integers = std::map<std::string, std::int64_t, std::less<>>;
using Words = std::map<std::string, std::string, std::less<>>;

Row row_of(const Integers& integers, const Words& words = {}) {
  Row row;
  row.op = "sparse_mla_decode";
  row.where = "test";
  for (const Parameter& parameter : define_sparse_mla_decode().parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  for (const auto& [name, value] : integers) row.integers.at(name) = value;
  row.words = words;
  return row;
}

// A problem on a device: its tensors uploaded, outputs poisoned by the allocation.
class Session {
 public:
  Session(const Row& row, const Step& step, const std::string& platform,
          const Conditions& conditions = {})
      : device_(device::open_device(platform, conditions)),
        problem_(define_sparse_mla_decode().make_problem(row, device_->properties())),
        tensors_(problem_->make_tensors()),
        stream_(device_->create_stream()) {
    for (const HostTensor& tensor : tensors_.all()) allocate(tensor.spec(), tensor.bytes().size());
    state_ = problem_->make_state(addresses_);
    fill(step);
  }

  void fill(const Step& step) {
    problem_->fill(step, tensors_);
    for (HostTensor& tensor : tensors_.all()) {
      if (tensor.spec().role == Role::input) copy(tensor, tensor.bytes(), true);
    }
  }

  plumb_status launch(const plumb_op_entry& entry) {
    return problem_->launch(entry, addresses_, state_.get(), stream_);
  }

  // Kernels that a launch enqueues.
  std::vector<std::string> captured(const plumb_op_entry& entry) {
    device_->begin_capture(stream_);
    EXPECT_EQ(launch(entry), PLUMB_OK);
    const device::Graph graph = device_->end_capture(stream_);
    std::vector<std::string> names;
    for (const device::GraphNode& node : device_->nodes(graph)) names.push_back(node.name);
    device_->destroy_graph(graph);
    return names;
  }

  // What the device holds now. Inputs have to be as they were.
  const TensorSet& download() {
    for (HostTensor& tensor : tensors_.all()) {
      std::vector<std::byte> stored(tensor.bytes().size());
      copy(tensor, stored, false);
      if (tensor.spec().role == Role::input) {
        EXPECT_TRUE(stored == tensor.bytes()) << tensor.spec().name << " was written";
      }
      tensor.bytes() = stored;
    }
    EXPECT_TRUE(device_->check_guards().empty());
    return tensors_;
  }

  std::vector<TensorReport> judge(const Step& step, const plumb_op_entry& entry) {
    return problem_->judge(step, download(), numerics_of(entry), entry.numerics);
  }

 private:
  static reference::Numerics numerics_of(const plumb_op_entry& entry) {
    return {.product = reference::Format::bf16,
            .accumulator = reference::Format::f32,
            .chains = entry.numerics.chains,
            .probability = reference::Format::bf16,
            .function_ulp = entry.numerics.function_ulp};
  }

  void allocate(const TensorSpec& spec, std::size_t bytes) {
    const std::size_t row_bytes = static_cast<std::size_t>(spec.shape.back()) * size_of(spec.dtype);
    addresses_.set(
        spec.name,
        spec.sparse
            ? device_->allocate_sparse(
                  static_cast<std::size_t>(spec.placement.back() + 1) * row_bytes, spec.name)
            : device_->allocate(bytes, spec.name));
  }

  void copy(const HostTensor& tensor, std::vector<std::byte>& bytes, bool to_device) {
    auto* memory = addresses_.get<std::byte>(tensor.spec().name);
    const std::size_t rows = tensor.spec().sparse ? tensor.spec().placement.size() : 1;
    const std::size_t row_bytes = bytes.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto place =
          static_cast<std::size_t>(tensor.spec().sparse ? tensor.spec().placement[row] : 0);
      std::byte* on_device = memory + place * row_bytes;
      std::byte* on_host = bytes.data() + row * row_bytes;
      device_->copy(to_device ? on_device : on_host, to_device ? on_host : on_device, row_bytes,
                    stream_);
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Problem> problem_;
  TensorSet tensors_;
  DeviceTensors addresses_;
  device::Stream stream_;
  std::unique_ptr<OpState> state_;
};

void expect_passed(const std::vector<TensorReport>& reports, const std::string& what) {
  for (const TensorReport& report : reports) {
    EXPECT_TRUE(report.passed()) << what << ": " << report.tensor << ": " << report.failures.front()
                                 << "\n"
                                 << report.pattern;
  }
}

void expect_right(const Row& row, const Step& step) {
  const plumb_op_entry entry = device::kernels::sparse_mla_decode();
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      Step filled = step;
      filled.fill = fill;
      Session session(row, filled, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      expect_passed(session.judge(filled, entry),
                    platform + " fill " + std::to_string(static_cast<int>(fill)));
    }
  }
}

TEST(SparseMlaKernels, TwoCachesWithHolesAndSinksAgreeWithTheReference) {
  expect_right(row_of({{"requests", 3}, {"heads", 6}, {"extra_width", 200}, {"holes_percent", 20}},
                      {{"sinks", "infinite"}}),
               {.seed = 1, .live = 3});
}

TEST(SparseMlaKernels, RaggedRowsOfEveryEdgeLengthAgreeWithTheReference) {
  expect_right(row_of({{"requests", 9},
                       {"heads", 2},
                       {"width", 130},
                       {"extra_width", 70},
                       {"page", 53},
                       {"extra_page", 2},
                       {"parts", 7},
                       {"lonely_every", 4}},
                      {{"form", "ragged"}, {"lengths", "edges"}}),
               {.seed = 2, .live = 7, .dead_rows = DeadRows::nan});
}

TEST(SparseMlaKernels, SeveralQueriesAndStridedRowsAgreeWithTheReference) {
  expect_right(row_of({{"requests", 2},
                       {"queries", 3},
                       {"heads", 17},
                       {"width", 65},
                       {"page", 1},
                       {"strided", 1},
                       {"repeats", 1},
                       {"block_n", 16},
                       {"parts", 5}}),
               {.seed = 3, .live = 2});
}

TEST(SparseMlaKernels, BlocksPastTwoAndFourGibibytesAgreeWithTheReference) {
  expect_right(
      row_of({{"requests", 2}, {"heads", 1}, {"extra_width", 96}, {"extra_page", 2}, {"far", 1}}),
      {.seed = 4, .live = 2});
}

TEST(SparseMlaKernels, AnyNumberOfPartsIsPlannedAsTheReferencePlans) {
  const plumb_op_entry entry = device::kernels::sparse_mla_decode();
  for (const std::int64_t parts : {1, 2, 3, 4, 6, 9, 14, 60}) {
    for (const std::int64_t overhead : {0, 5}) {
      const Row row = row_of({{"requests", 5},
                              {"heads", 1},
                              {"width", 96},
                              {"extra_width", 40},
                              {"block_n", 8},
                              {"parts", parts},
                              {"fixed_overhead", overhead}},
                             {{"lengths", "random"}});
      const Step step{.seed = 5, .live = 4};
      Session session(row, step, "sim-sm90");
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      expect_passed(session.judge(step, entry), std::to_string(parts) + " parts");
    }
  }
}

Conditions in_order(Order order) {
  Conditions conditions;
  conditions.order = order;
  conditions.seed = 11;
  return conditions;
}

TEST(SparseMlaKernels, EveryOrderOfThreadsGivesTheSameBits) {
  const plumb_op_entry entry = device::kernels::sparse_mla_decode();
  const Row row = row_of({{"requests", 3}, {"heads", 5}, {"width", 100}, {"parts", 4}});
  const Step step{.seed = 6, .live = 3};
  for (const std::string& platform : kPlatforms) {
    std::vector<std::vector<std::byte>> seen;
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      Session session(row, step, platform, in_order(order));
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const char* name : {"out", "lse", "partial_out", "partial_lse", "tiles"}) {
        seen.push_back(session.download().at(name).bytes());
      }
    }
    for (std::size_t i = 5; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[i - 5]) << platform;
  }
}

TEST(SparseMlaKernels, TheFirstCallOnAPlanLaunchesThePlannerAndLaterCallsDoNot) {
  const plumb_op_entry entry = device::kernels::sparse_mla_decode();
  Session session(row_of({{"requests", 2}, {"heads", 1}}), {.seed = 7, .live = 2}, "sim-sm90");
  EXPECT_EQ(session.captured(entry),
            (std::vector<std::string>{"plan_kernel", "attend_kernel", "combine_kernel"}));
  EXPECT_EQ(session.captured(entry), (std::vector<std::string>{"attend_kernel", "combine_kernel"}));
}

// What a graph does that was captured after a warm-up on the same plan: the lengths are new, the
// plan is the old one, and the tail blocks of what has grown are lost.
TEST(SparseMlaKernels, APlanKeptAcrossLongerLengthsFailsInPlanAndOutput) {
  const plumb_op_entry entry = device::kernels::sparse_mla_decode();
  const Row row = row_of({{"requests", 2}, {"heads", 2}, {"width", 192}, {"parts", 3}});
  Session session(row, {.seed = 8, .live = 0}, "sim-sm90");
  ASSERT_EQ(session.launch(entry), PLUMB_OK);
  const Step grown{.seed = 8, .live = 2};
  session.fill(grown);
  ASSERT_EQ(session.launch(entry), PLUMB_OK);
  std::vector<std::string> failed;
  for (const TensorReport& report : session.judge(grown, entry)) {
    if (!report.passed()) failed.push_back(report.tensor);
  }
  EXPECT_GE(failed.size(), 2u);
  EXPECT_EQ(failed.front(), "tiles");
}

TEST(SparseMlaKernels, CheckedKernelsFindNeitherRaceNorStrayAccess) {
  const plumb_op_entry entry = device::checked_kernels::sparse_mla_decode();
  const Row row = row_of({{"requests", 3},
                          {"heads", 3},
                          {"width", 70},
                          {"extra_width", 20},
                          {"holes_percent", 10},
                          {"parts", 2}},
                         {{"form", "ragged"}, {"lengths", "random"}, {"sinks", "finite"}});
  for (const std::string& platform : kPlatforms) {
    const Step step{.seed = 9, .live = 2, .dead_rows = DeadRows::huge};
    Conditions conditions = in_order(Order::random);
    conditions.checked = true;
    Session session(row, step, platform, conditions);
    ASSERT_EQ(session.launch(entry), PLUMB_OK);
    expect_passed(session.judge(step, entry), platform);
  }
}

// A launch with one field changed. The pointers need not be valid: nothing is enqueued.
plumb_status status_with(void (*change)(plumb_sparse_mla_decode_params&)) {
  const auto some = [](auto*& pointer) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(std::uintptr_t{256});
  };
  plumb_mla_plan plan{};
  some(plan.tiles);
  some(plan.num_splits);
  plan.num_parts = 1;
  plan.block_n = 64;
  plumb_sparse_mla_decode_params params{};
  some(params.q);
  some(params.out);
  some(params.partial_out);
  some(params.partial_lse);
  some(params.main_cache.data);
  some(params.main.indices);
  some(params.main.indptr);
  params.main.width = 1;
  params.main_cache.block_stride_bytes = 1152;
  params.main_cache.num_blocks = params.main_cache.page = 1;
  params.main_cache.dialect = PLUMB_E4M3FN;
  params.plan = &plan;
  params.requests = params.queries = params.heads = 1;
  change(params);
  return device::kernels::sparse_mla_decode().launch(&params);
}

TEST(SparseMlaKernels, LaunchRefusesWhatTheContractForbids) {
  using Params = plumb_sparse_mla_decode_params;
  EXPECT_EQ(status_with([](Params& p) { p.queries = 2; }), PLUMB_INVALID_ARGUMENT);  // ragged
  EXPECT_EQ(status_with([](Params& p) { p.requests = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p) { p.plan = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p) { p.plan->block_n = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p) { p.main_cache.page = 2; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p) { p.main_cache.dialect = PLUMB_BF16; }),
            PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status_with([](Params& p) { p.extra = p.main; }), PLUMB_INVALID_ARGUMENT);
}

TEST(SparseMlaKernels, DeviceDecodesEveryCodeAsTheFormatTablesDo) {
  namespace kernels = device::sparse_mla_test_kernels;
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const auto expect_same = [&](float got, double expected) {
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected) << code;
      EXPECT_TRUE(std::isnan(expected) || std::signbit(got) == std::signbit(expected)) << code;
    };
    expect_same(kernels::decode_e4m3(byte, PLUMB_E4M3FN),
                reference::e4m3_values(reference::Dialect::e4m3fn)[byte]);
    expect_same(kernels::decode_e4m3(byte, PLUMB_E4M3FNUZ),
                reference::e4m3_values(reference::Dialect::e4m3fnuz)[byte]);
    expect_same(kernels::decode_ue8m0(byte), reference::decode_e8m0(byte));
  }
}

}  // namespace
}  // namespace plumb::cases
