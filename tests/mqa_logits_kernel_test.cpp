// SPDX-License-Identifier: Apache-2.0
//
// plumb's kernels of the lightning indexer's logits on simulated platforms: edge shapes, the same
// bits in every order of threads, addresses past 2^31 elements, what their launchers refuse; and
// what the top-k kernels select from the logits that they leave behind.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/problem.h"
#include "cases/top_k.h"
#include "device/device.h"
#include "reference/top_k_per_row_decode.h"
#include "reference/top_k_per_row_prefill.h"
#include "tests/op_session.h"

namespace plumb::device::kernels {
plumb_op_entry fp8_mqa_logits();
plumb_op_entry fp8_paged_mqa_logits();
plumb_op_entry top_k_per_row_prefill();
plumb_op_entry top_k_per_row_decode();
}  // namespace plumb::device::kernels
namespace plumb::cases {
OpDefinition define_fp8_mqa_logits();
OpDefinition define_fp8_paged_mqa_logits();
}  // namespace plumb::cases

namespace plumb::cases {
namespace {

using device::Conditions;
using device::Device;
using device::Order;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

using Integers = std::map<std::string, std::int64_t, std::less<>>;
using Words = std::map<std::string, std::string, std::less<>>;

Row row_of(const OpDefinition& op, const Integers& integers, const Words& words = {}) {
  Row row;
  row.op = op.name;
  row.where = "test";
  for (const Parameter& parameter : op.parameters) {
    row.integers[std::string(parameter.name)] = parameter.default_value;
  }
  for (const auto& [name, value] : integers) row.integers.at(name) = value;
  row.words = words;
  return row;
}

void expect_right(const OpDefinition& op, const plumb_op_entry& entry, const Row& row,
                  const Step& step) {
  for (const std::string& platform : kPlatforms) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      Step filled = step;
      filled.fill = fill;
      OpSession session(op, row, filled, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const TensorReport& report : session.judge(filled, entry)) {
        EXPECT_TRUE(report.passed()) << platform << ": " << report.failures.front();
        EXPECT_GT(report.elements_compared, 0);
      }
    }
  }
}

TEST(MqaLogitsKernels, PrefillIsRightForEveryHeadCountAndDimension) {
  const OpDefinition op = define_fp8_mqa_logits();
  for (const std::int64_t heads : {1, 7, 8, 16, 32, 64}) {
    for (const std::int64_t dim : {16, 32, 64, 128}) {
      const Row row =
          row_of(op, {{"rows", 3}, {"length", 129}, {"lead", 1}, {"heads", heads}, {"dim", dim}});
      expect_right(op, device::kernels::fp8_mqa_logits(), row, {.seed = 3, .live = 2});
    }
  }
}

TEST(MqaLogitsKernels, PagedIsRightForEveryPageAndLayout) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::int64_t page : {1, 2, 16, 32, 53, 64, 128, 256}) {
    for (const std::string layout : {"planar", "shuffled"}) {
      if (layout == "shuffled" && page % 16 != 0) continue;
      const Row row = row_of(op,
                             {{"requests", 3},
                              {"next_n", 2},
                              {"length", 150},
                              {"length_step", 70},
                              {"heads", 8},
                              {"dim", 32},
                              {"page", page}},
                             {{"layout", layout}});
      expect_right(op, device::kernels::fp8_paged_mqa_logits(), row,
                   {.seed = 4, .live = 2, .dead_rows = DeadRows::nan});
    }
  }
}

TEST(MqaLogitsKernels, EveryOrderOfThreadsGivesTheSameBits) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  const Row row = row_of(op, {{"requests", 2}, {"length", 140}, {"heads", 8}, {"gap", 30}});
  const Step step{.seed = 5, .live = 2};
  for (const std::string& platform : kPlatforms) {
    std::vector<std::vector<std::byte>> results;
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      Conditions conditions;
      conditions.order = order;
      conditions.seed = 11;
      OpSession session(op, row, step, platform, conditions);
      ASSERT_EQ(session.launch(device::kernels::fp8_paged_mqa_logits()), PLUMB_OK);
      results.push_back(session.download().at("logits").bytes());
    }
    EXPECT_TRUE(results[0] == results[1] && results[0] == results[2]) << platform;
  }
}

// Memory of one device, filled from the host.
class Memory {
 public:
  explicit Memory(std::string_view platform) : device_(device::open_device(platform, {})) {
    stream = device_->create_stream();
  }
  template <class T>
  T* put(const std::vector<T>& values) {
    auto* memory = static_cast<T*>(device_->allocate(values.size() * sizeof(T), "test"));
    device_->copy(memory, values.data(), values.size() * sizeof(T), stream);
    return memory;
  }
  template <class T>
  T* reserve(std::int64_t count) {
    return static_cast<T*>(
        device_->allocate_sparse(static_cast<std::size_t>(count) * sizeof(T), "test"));
  }
  template <class T>
  std::vector<T> get(const T* memory, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_->copy(values.data(), memory, values.size() * sizeof(T), stream);
    return values;
  }
  device::Stream stream;

 private:
  std::unique_ptr<Device> device_;
};

// Row 1 lies 2^31 elements behind row 0 (aiter #4244). All codes are 1, so every logit is 16 * dim
// times a weight.
TEST(MqaLogitsKernels, RowsBeyondTwoToThe31ElementsAreWritten) {
  Memory memory("sim-sm90");
  constexpr std::int64_t kStride = std::int64_t{1} << 31;
  plumb_fp8_mqa_logits_params p{};
  p.q = memory.put(std::vector<std::uint8_t>(2 * 16 * 16, 0x38));
  p.k = memory.put(std::vector<std::uint8_t>(130 * 16, 0x38));
  p.k_scale = memory.put(std::vector<float>(130, 1.0F));
  p.weights = memory.put(std::vector<float>(2 * 16, 2.0F));
  p.starts = memory.put(std::vector<std::int32_t>{0, 0});
  p.ends = memory.put(std::vector<std::int32_t>{130, 130});
  p.logits = memory.reserve<float>(kStride + 256);
  p.rows = 2;
  p.keys = 130;
  p.logits_row_stride = kStride;
  p.heads = p.dim = 16;
  p.q_dialect = p.k_dialect = PLUMB_E4M3FN;
  p.stream = memory.stream;
  ASSERT_EQ(device::kernels::fp8_mqa_logits().launch(&p), PLUMB_OK);
  for (const std::int64_t row : {0, 1}) {
    EXPECT_EQ(memory.get(p.logits + row * kStride, 130), std::vector<float>(130, 512.0F)) << row;
  }
}

// Columns of one stage and of the next, at the borders where a known stage returned noise.
TEST(MqaLogitsKernels, EveryColumnOfALongContextIsScored) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::int64_t length : {2047, 2048, 2049, 4097}) {
    const Row row =
        row_of(op, {{"requests", 1}, {"length", length}, {"heads", 8}, {"dim", 32}, {"page", 1}});
    expect_right(op, device::kernels::fp8_paged_mqa_logits(), row, {.seed = 6, .live = 1});
  }
}

TEST(MqaLogitsKernels, NothingToDoIsNoLaunch) {
  plumb_fp8_mqa_logits_params prefill{};
  prefill.heads = prefill.dim = 16;
  prefill.q_dialect = prefill.k_dialect = PLUMB_E4M3FN;
  EXPECT_EQ(device::kernels::fp8_mqa_logits().launch(&prefill), PLUMB_OK);
  plumb_fp8_paged_mqa_logits_params paged{};
  paged.heads = paged.dim = 16;
  paged.next_n = paged.context_lens_dims = paged.cache.page = 1;
  paged.cache.block_stride_bytes = 20;
  paged.q_dialect = paged.cache.dialect = PLUMB_E4M3FN;
  EXPECT_EQ(device::kernels::fp8_paged_mqa_logits().launch(&paged), PLUMB_OK);
}

TEST(MqaLogitsKernels, ImpossibleArgumentsAreRefused) {
  const auto refused = [](const plumb_op_entry& entry, const auto& params) {
    return entry.launch(&params) == PLUMB_INVALID_ARGUMENT;
  };
  const plumb_op_entry prefill = device::kernels::fp8_mqa_logits();
  EXPECT_EQ(prefill.launch(nullptr), PLUMB_INVALID_ARGUMENT);
  plumb_fp8_mqa_logits_params p{};
  p.heads = p.dim = 16;
  p.rows = p.keys = p.logits_row_stride = 1;
  p.q_dialect = PLUMB_E4M3FN;
  EXPECT_TRUE(refused(prefill, p)) << "keys of no dialect";
  p.k_dialect = PLUMB_E4M3FN;
  EXPECT_TRUE(refused(prefill, p)) << "null pointers";
  p.max_seqlen_k = 1;
  p.clean_logits = 1;
  EXPECT_TRUE(refused(prefill, p)) << "row-local and clean";

  const plumb_op_entry paged = device::kernels::fp8_paged_mqa_logits();
  EXPECT_EQ(paged.launch(nullptr), PLUMB_INVALID_ARGUMENT);
  plumb_fp8_paged_mqa_logits_params d{};
  d.heads = d.dim = 16;
  d.next_n = 1;
  d.context_lens_dims = 2;
  d.q_dialect = d.cache.dialect = PLUMB_E4M3FN;
  d.cache.page = 8;
  d.cache.block_stride_bytes = 8 * 20;
  d.clean_logits = 1;
  EXPECT_TRUE(refused(paged, d)) << "2-D lengths and clean";
  d.clean_logits = 0;
  d.shuffled = 1;
  EXPECT_TRUE(refused(paged, d)) << "a page that cannot be shuffled";
  d.shuffled = 0;
  d.cache.block_stride_bytes = 8 * 20 - 4;
  EXPECT_TRUE(refused(paged, d)) << "blocks that overlap";
}

// The indices that a top-k kernel selects from logits on the host, where they are what a logits
// kernel left on the device: NaN and poison behind the lengths and in the padding included.
std::vector<std::int32_t> select_prefill(const reference::TopKPerRowPrefill& input,
                                         std::string_view platform) {
  Memory memory(platform);
  const auto* bytes = input.logits;
  std::vector<float> logits(bytes, bytes + input.num_rows * input.logits_row_stride);
  plumb_top_k_per_row_prefill_params p{};
  p.logits = memory.put(logits);
  p.row_starts =
      memory.put(std::vector<std::int32_t>(input.row_starts, input.row_starts + input.num_rows));
  p.row_ends =
      memory.put(std::vector<std::int32_t>(input.row_ends, input.row_ends + input.num_rows));
  p.indices = memory.put(
      std::vector<std::int32_t>(static_cast<std::size_t>(input.num_rows * input.k), 0x7ff57ff5));
  p.num_rows = input.num_rows;
  p.columns = input.columns;
  p.logits_row_stride = input.logits_row_stride;
  p.logits_column_stride = 1;
  p.k = input.k;
  p.stream = memory.stream;
  EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&p), PLUMB_OK);
  return memory.get(p.indices, input.num_rows * input.k);
}

std::vector<std::int32_t> select_decode(const reference::TopKPerRowDecode& input,
                                        std::string_view platform) {
  Memory memory(platform);
  const auto* bytes = input.logits;
  const std::int64_t requests = input.num_rows / input.next_n;
  plumb_top_k_per_row_decode_params p{};
  p.logits =
      memory.put(std::vector<float>(bytes, bytes + input.num_rows * input.logits_row_stride));
  p.seq_lens = memory.put(std::vector<std::int32_t>(
      input.seq_lens, input.seq_lens + requests * input.seq_lens_row_stride));
  p.indices = memory.put(
      std::vector<std::int32_t>(static_cast<std::size_t>(input.num_rows * input.k), 0x7ff57ff5));
  p.num_rows = input.num_rows;
  p.columns = input.columns;
  p.logits_row_stride = input.logits_row_stride;
  p.logits_column_stride = 1;
  p.seq_lens_row_stride = input.seq_lens_row_stride;
  p.seq_lens_dims = input.seq_lens_dims;
  p.next_n = input.next_n;
  p.k = input.k;
  p.stream = memory.stream;
  EXPECT_EQ(device::kernels::top_k_per_row_decode().launch(&p), PLUMB_OK);
  return memory.get(p.indices, input.num_rows * input.k);
}

void expect_selected(const std::vector<reference::LogitWindow>& windows, std::int32_t k,
                     const std::vector<std::int32_t>& indices, const std::string& what) {
  const auto wrong = reference::check_selection(windows, k, indices.data());
  for (std::size_t row = 0; row < wrong.size(); ++row) {
    EXPECT_TRUE(wrong[row].empty())
        << what << ", row " << row << " of length " << windows[row].length;
  }
}

constexpr std::int32_t kTopK = 64;

// Contexts of K - 1, K, K + 1 and 4 K tokens in one batch, next_n 2, unclean.
TEST(IndexerThenTopK, DecodeSelectsFromTheTokensOfEachRow) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::string& platform : kPlatforms) {
    for (const std::int64_t length : {kTopK - 1, kTopK, kTopK + 1, 4 * kTopK}) {
      const Row row = row_of(op, {{"requests", 3},
                                  {"next_n", 2},
                                  {"length", length},
                                  {"gap", 100},
                                  {"heads", 8},
                                  {"page", 16}});
      const Step step{.seed = 8, .live = 2, .dead_rows = DeadRows::huge};
      const plumb_op_entry entry = device::kernels::fp8_paged_mqa_logits();
      OpSession session(op, row, step, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const TensorReport& report : session.judge(step, entry)) {
        EXPECT_TRUE(report.passed()) << report.failures.front();
      }
      const TensorSet& tensors = session.download();
      const HostTensor& logits = tensors.at("logits");
      EXPECT_TRUE(std::isnan(logits.value(0, logits.columns() - 1))) << "no garbage to be seen";
      reference::TopKPerRowDecode input;
      input.logits = logits.data<float>();
      input.seq_lens = tensors.at("context_lens").data<std::int32_t>();
      input.num_rows = 6;
      input.columns = length + 100;
      input.logits_row_stride = logits.columns();
      input.seq_lens_row_stride = 2;
      input.seq_lens_dims = 2;
      input.next_n = 2;
      input.k = kTopK;
      expect_selected(windows_of(input), kTopK, select_decode(input, platform),
                      platform + ", context " + std::to_string(length));
    }
  }
}

// Windows that begin above 0, with global and with row-local columns: the same row-local indices.
TEST(IndexerThenTopK, PrefillSelectsRowLocallyFromEitherForm) {
  const OpDefinition op = define_fp8_mqa_logits();
  const plumb_op_entry entry = device::kernels::fp8_mqa_logits();
  for (const std::string& platform : kPlatforms) {
    for (const std::int64_t length : {kTopK - 1, kTopK, kTopK + 1, 4 * kTopK}) {
      std::vector<std::vector<std::int32_t>> selected;
      for (const std::int64_t row_local : {0, 1}) {
        const Row row = row_of(op, {{"rows", 5},
                                    {"requests", 2},
                                    {"length", length},
                                    {"length_step", 1},
                                    {"lead", 70},
                                    {"gap", 9},
                                    {"heads", 8},
                                    {"row_local", row_local}});
        const Step step{.seed = 9, .live = 4, .dead_rows = DeadRows::nan};
        OpSession session(op, row, step, platform);
        ASSERT_EQ(session.launch(entry), PLUMB_OK);
        for (const TensorReport& report : session.judge(step, entry)) {
          EXPECT_TRUE(report.passed()) << report.failures.front();
        }
        const TensorSet& tensors = session.download();
        const HostTensor& logits = tensors.at("logits");
        const auto* starts = tensors.at("starts").data<std::int32_t>();
        const auto* ends = tensors.at("ends").data<std::int32_t>();
        std::vector<std::int32_t> first(5, 0), behind(5);
        for (std::size_t r = 0; r < 5; ++r) {
          if (row_local == 0) first[r] = starts[r];
          behind[r] = first[r] + ends[r] - starts[r];
        }
        reference::TopKPerRowPrefill input;
        input.logits = logits.data<float>();
        input.row_starts = first.data();
        input.row_ends = behind.data();
        input.num_rows = 5;
        input.columns = logits.columns();
        input.logits_row_stride = logits.columns();
        input.k = kTopK;
        selected.push_back(select_prefill(input, platform));
        expect_selected(windows_of(input), kTopK, selected.back(),
                        platform + ", window " + std::to_string(length));
      }
      EXPECT_EQ(selected[0], selected[1]) << platform << ", window " << length;
    }
  }
}

}  // namespace
}  // namespace plumb::cases
