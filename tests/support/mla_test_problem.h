// SPDX-License-Identifier: Apache-2.0
//
// Small sparse MLA problems for tests: caches filled with encoded tokens, candidate lists, queries.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/sparse_mla/mla_problem.h"

namespace plumb::tests {

// Counter-based random numbers: a pure function of seed and counter.
inline double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15 + counter * 0xd1342543de82ef95;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
inline double normal(std::uint64_t seed, std::uint64_t counter) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(seed, counter * 12 + i);
  return sum;
}

// Value of dimension d of token t.
using TokenValue = std::function<double(std::int64_t t, std::int64_t d)>;

struct TestCache {
  std::vector<std::uint8_t> bytes;
  reference::KvCache view;
  reference::ScaleWriting writing = reference::ScaleWriting::fp32;  // for layout v32

  TestCache(std::int64_t num_blocks, std::int64_t page,
            reference::Dialect dialect = reference::Dialect::e4m3fn,
            reference::KvLayout layout = reference::KvLayout::v4) {
    const std::int64_t stride = layout == reference::KvLayout::rows
                                    ? 2 * reference::kV32Dim
                                    : reference::kv_block_bytes(page, layout);
    bytes.assign(num_blocks * stride, 0xff);  // NaN everywhere
    view = {bytes.data(), stride, num_blocks, page, dialect, layout};
    view.row_dims = reference::kV32Dim;
  }
  void write(std::int64_t slot, std::int64_t token, const TokenValue& value) {
    std::array<float, reference::kV32Dim> values;
    for (std::int64_t d = 0; d < view.key_dims(); ++d) {
      values[d] = static_cast<float>(value(token, d));
    }
    const std::span<const float, reference::kV32Dim> all(values);
    std::uint8_t* block = bytes.data() + slot / view.page * view.block_stride_bytes;
    const std::int64_t offset = slot % view.page;
    switch (view.layout) {
      case reference::KvLayout::v4:
        return reference::encode_token(block, view.page, offset, view.dialect,
                                       all.first<reference::kMlaDim>());
      case reference::KvLayout::v32:
        return reference::encode_v32_token(block + offset * reference::kV32TokenBytes, view.dialect,
                                           writing, all);
      case reference::KvLayout::rows:
        for (std::int64_t d = 0; d < view.row_dims; ++d) {
          const std::uint16_t bits = reference::encode_bf16(values[d]);
          std::memcpy(block + 2 * d, &bits, sizeof bits);
        }
    }
  }
};

// A problem in which every row has the candidates 0 .. width - 1 of the main cache, without extra
// cache and sink. Keys of the layouts v32 and rows have 576 dimensions.
struct TestProblem {
  std::vector<std::uint16_t> q;
  std::vector<std::int32_t> indices;
  TestCache cache;
  reference::SparseMlaProblem problem;

  TestProblem(std::int64_t rows, std::int64_t heads, std::int64_t width, const TokenValue& value,
              const std::function<double(std::int64_t)>& query,
              reference::KvLayout layout = reference::KvLayout::v4)
      : indices(rows * width),
        cache(layout == reference::KvLayout::rows ? width : (width + 63) / 64,
              layout == reference::KvLayout::rows ? 1 : 64, reference::Dialect::e4m3fn, layout) {
    const std::int64_t dims = cache.view.key_dims();
    q.resize(rows * heads * dims);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = reference::encode_bf16(query(i));
    for (std::int64_t i = 0; i < rows * width; ++i) {
      indices[i] = static_cast<std::int32_t>(i % width);
    }
    for (std::int64_t slot = 0; slot < width; ++slot) cache.write(slot, slot, value);
    problem.q = q.data();
    problem.requests = rows;
    problem.heads = heads;
    problem.q_request_stride = problem.q_query_stride = heads * dims;
    problem.q_head_stride = dims;
    problem.main_cache = cache.view;
    problem.main = {indices.data(), nullptr, nullptr, width, width, width};
    problem.sm_scale = 1 / std::sqrt(static_cast<float>(dims));
  }
  TestProblem(const TestProblem&) = delete;
};

}  // namespace plumb::tests
