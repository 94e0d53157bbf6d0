// SPDX-License-Identifier: Apache-2.0
//
// Tests what the cases of the metadata kernels do not: buffers that are reused in a schedule of
// steps, what launchers refuse, and how a wrong ragged buffer is reported.
#include <gtest/gtest.h>
#include <plumb/ops/metadata.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cases/ops/metadata/integer_inputs.h"
#include "device/device.h"

namespace plumb::device::kernels {
device::OpEntry build_ragged_indices_from_dense();
device::OpEntry copy_ragged_to_graph_buffers();
device::OpEntry compute_global_topk_ragged_indices_and_indptr();
device::OpEntry compute_global_topk_indices_and_lens();
device::OpEntry combine_topk_swa_indices_ragged();
device::OpEntry swa_decode_metadata();
device::OpEntry c128a_decode_metadata();
device::OpEntry v32_paged_metadata();
device::OpEntry v32_paged_kv_indices();
device::OpEntry pack_seq();
device::OpEntry unpack_seq();
}  // namespace plumb::device::kernels

namespace plumb::cases {
namespace metadata_kernel_test {

namespace kernels = device::kernels;
using Ints = std::vector<std::int32_t>;

// Allocates device memory of int32.
class Memory {
 public:
  explicit Memory(const std::string& platform)
      : device_(device::open_device(platform)), stream_(device_->create_stream()) {}

  std::int32_t* zeros(std::size_t count) { return hold(Ints(count, 0)); }
  std::int32_t* hold(const Ints& values) {
    auto* memory = static_cast<std::int32_t*>(device_->allocate(4 * values.size(), "test"));
    device_->copy(memory, values.data(), 4 * values.size(), stream_);
    return memory;
  }
  Ints read(const std::int32_t* memory, std::size_t count) {
    Ints values(count);
    device_->copy(values.data(), memory, 4 * count, stream_);
    device_->synchronize(stream_);
    return values;
  }
  device::Stream stream() { return stream_; }

 private:
  std::unique_ptr<device::Device> device_;
  device::Stream stream_;
};

constexpr std::int64_t kMaxTokens = 64, kTopK = 128;

// A metadata builder: its buffers, and the steps that it takes with one token per request.
class Builder {
 public:
  explicit Builder(Memory& memory) : memory_(memory) {
    req_ids = memory.zeros(kMaxTokens);
    indptr = memory.zeros(kMaxTokens + 1);
    indices = memory.zeros(kMaxTokens * kTopK);
    extents = memory.zeros(2);
  }

  void step(std::int32_t requests, std::int32_t seq_len) {
    Ints starts(static_cast<std::size_t>(requests) + 1);
    std::iota(starts.begin(), starts.end(), 0);
    const Ints lengths(static_cast<std::size_t>(requests), seq_len);
    plumb_v32_paged_metadata_params metadata{};
    metadata.query_start_loc = memory_.hold(starts);
    metadata.seq_lens = memory_.hold(lengths);
    metadata.req_id_per_token = req_ids;
    metadata.paged_kv_indptr = indptr;
    metadata.paged_kv_indices = indices;
    metadata.extents = extents;
    metadata.max_tokens = kMaxTokens;
    metadata.requests = requests;
    metadata.topk = kTopK;
    metadata.extent = extent;
    metadata.stream = memory_.stream();
    ASSERT_EQ(kernels::v32_paged_metadata().launch(&metadata), PLUMB_OK);
    fill_indices(requests);
  }

  std::int32_t *req_ids, *indptr, *indices, *extents;
  plumb_cleared_extent extent = PLUMB_EXTENT_ENTRIES;

 private:
  // All top-k positions of every token are 0. Request r has block 3 + r of 64 positions, so that no
  // slot is 0.
  void fill_indices(std::int32_t requests) {
    Ints blocks(static_cast<std::size_t>(requests));
    std::iota(blocks.begin(), blocks.end(), 3);
    plumb_v32_paged_kv_indices_params params{};
    params.topk_indices = memory_.zeros(kMaxTokens * kTopK);
    params.req_id_per_token = req_ids;
    params.block_table = memory_.hold(blocks);
    params.paged_kv_indptr = indptr;
    params.paged_kv_indices = indices;
    params.tokens = kMaxTokens;
    params.topk = kTopK;
    params.blocks_per_request = params.block_table_row_stride = 1;
    params.topk_indices_row_stride = kTopK;
    params.page = 64;
    params.stream = memory_.stream();
    ASSERT_EQ(kernels::v32_paged_kv_indices().launch(&params), PLUMB_OK);
  }

  Memory& memory_;
};

// Steps with few and many requests, and contexts longer and shorter than topk. After each step,
// everything past the step's own data is 0, with every rule of clearing.
TEST(V32Buffers, HoldNothingButZeroBehindTheLatestStep) {
  const std::pair<std::int32_t, std::int32_t> steps[] = {{64, 300}, {1, 127},  {17, 128}, {40, 5},
                                                         {40, 129}, {39, 300}, {2, 1}};
  const std::pair<std::string, plumb_cleared_extent> builders[] = {
      {"sim-sm90", PLUMB_EXTENT_ENTRIES},
      {"sim-gfx942", PLUMB_EXTENT_ENTRIES},
      {"sim-sm90", PLUMB_EXTENT_FULL_FILL}};
  for (const auto& [platform, extent] : builders) {
    Memory memory(platform);
    Builder builder(memory);
    builder.extent = extent;
    for (const auto& [requests, seq_len] : steps) {
      builder.step(requests, seq_len);
      const std::int64_t own = std::min<std::int64_t>(seq_len, kTopK), entries = requests * own;
      Ints ids(kMaxTokens, 0), indices(kMaxTokens * kTopK, 0);
      std::iota(ids.begin(), ids.begin() + requests, 0);
      for (std::int64_t i = 0; i < entries; ++i) {
        indices[i] = static_cast<std::int32_t>((3 + i / own) * 64);
      }
      EXPECT_EQ(memory.read(builder.req_ids, kMaxTokens), ids) << platform << ", " << requests;
      EXPECT_EQ(memory.read(builder.indices, kMaxTokens * kTopK), indices)
          << platform << ", " << requests;
      EXPECT_EQ(memory.read(builder.extents, 2),
                (Ints{requests, static_cast<std::int32_t>(entries)}));
    }
  }
}

// With PLUMB_EXTENT_N_TOPK, entries of an earlier step stay between the last range and tokens *
// topk.
TEST(V32Buffers, KeepOldEntriesInsideTheExtentOfTopK) {
  Memory memory("sim-sm90");
  Builder builder(memory);
  builder.extent = PLUMB_EXTENT_N_TOPK;
  builder.step(3, 300);
  builder.step(2, 1);
  const Ints indices = memory.read(builder.indices, 3 * kTopK);
  EXPECT_EQ(indices[2], 3 * 64);              // written by the first step
  EXPECT_EQ(indices[2 * kTopK - 1], 4 * 64);  // written by the first step
  EXPECT_EQ(Ints(indices.begin() + 2 * kTopK, indices.end()), Ints(kTopK, 0));
  EXPECT_EQ(memory.read(builder.extents, 2), (Ints{2, 2 * kTopK}));
}

template <class Params>
void expect_refused(const device::OpEntry& entry, Params params, void (*spoil)(Params&)) {
  EXPECT_EQ(entry.launch(nullptr), PLUMB_INVALID_ARGUMENT) << entry.op;
  spoil(params);
  EXPECT_EQ(entry.launch(&params), PLUMB_INVALID_ARGUMENT) << entry.op;
}

TEST(MetadataKernels, ImpossibleArgumentsAreRefused) {
  using Build = plumb_build_ragged_indices_from_dense_params;
  expect_refused<Build>(kernels::build_ragged_indices_from_dense(), {},
                        [](Build& p) { p.num_rows = -2; });
  using Copy = plumb_copy_ragged_to_graph_buffers_params;
  expect_refused<Copy>(kernels::copy_ragged_to_graph_buffers(), {}, [](Copy& p) { p.rows = 1; });
  using Ragged = plumb_compute_global_topk_ragged_indices_and_indptr_params;
  expect_refused<Ragged>(kernels::compute_global_topk_ragged_indices_and_indptr(), {},
                         [](Ragged& p) { p.topk = 1; });
  using Dense = plumb_compute_global_topk_indices_and_lens_params;
  expect_refused<Dense>(kernels::compute_global_topk_indices_and_lens(), {}, [](Dense& p) {
    p.topk = p.block_size = p.tokens = p.global_indices_row_stride = 1;
  });
  using Combine = plumb_combine_topk_swa_indices_ragged_params;
  expect_refused<Combine>(kernels::combine_topk_swa_indices_ragged(), {},
                          [](Combine& p) { p.ratio = 0; });
  using Swa = plumb_swa_decode_metadata_params;
  expect_refused<Swa>(kernels::swa_decode_metadata(), {}, [](Swa& p) { p.window = 0; });
  using C128a = plumb_c128a_decode_metadata_params;
  expect_refused<C128a>(kernels::c128a_decode_metadata(), {},
                        [](C128a& p) { p.decode_tokens = -1; });
  using Paged = plumb_v32_paged_metadata_params;
  expect_refused<Paged>(kernels::v32_paged_metadata(), {}, [](Paged& p) { p.topk = 0; });
  using Indices = plumb_v32_paged_kv_indices_params;
  expect_refused<Indices>(kernels::v32_paged_kv_indices(), {}, [](Indices& p) {
    p.page = 64;
    p.topk = 200;  // no multiple of 128
  });
  expect_refused<Indices>(kernels::v32_paged_kv_indices(), {}, [](Indices& p) {
    p.page = 2;
    p.topk = 128;
  });
  using Pack = plumb_pack_seq_params;
  expect_refused<Pack>(kernels::pack_seq(), {}, [](Pack& p) {
    p.columns = p.out_row_stride = p.out_sequence_stride = 1;
    p.element_bytes = 3;
  });
  using Unpack = plumb_unpack_seq_params;
  expect_refused<Unpack>(kernels::unpack_seq(), {}, [](Unpack& p) { p.columns = 0; });
}

// Entries 0-2 belong to row 0, entry 3 to row 2. No row owns entries 4 and 5.
TEST(JudgeRagged, SaysWhichRowsOwnWrongEntriesAndWhatIsBehind) {
  HostTensor flat({.name = "flat", .dtype = Dtype::i32, .shape = {6, 1}});
  const std::vector<std::int64_t> expected = {1, 2, 3, 4, 5, 6}, indptr = {0, 3, 3, 4};
  store_integers({1, 2, 3, 4, 5, 6}, flat);
  EXPECT_TRUE(compare(expect_ragged(flat, expected, indptr, "token")).passed());
  store_integers({1, 0, 0, 0, 5, 0}, flat);
  const TensorReport report = compare(expect_ragged(flat, expected, indptr, "token"));
  ASSERT_EQ(report.failures.size(), 3u);
  EXPECT_EQ(report.failures[1], "flat: these entries belong to tokens 0, 2 of 3");
  EXPECT_EQ(report.failures[2], "flat: 1 entries behind the last of 4 are wrong");
  store_integers({1, 2, 3, 4, 0, 0}, flat);
  EXPECT_EQ(compare(expect_ragged(flat, expected, indptr, "tokens")).failures.back(),
            "flat: 2 entries behind the last of 4 are wrong");
}

}  // namespace metadata_kernel_test
}  // namespace plumb::cases
