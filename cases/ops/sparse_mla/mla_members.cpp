// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/sparse_mla/mla_members.h"

#include <utility>

#include "reference/cache/kv_cache.h"

namespace plumb::cases {

namespace {

using reference::kMlaScaleBytes;
using reference::kMlaTokenBytes;
using reference::kV32TokenBytes;

Formula bytes_of_v4(const Formula& page) {
  return div_up(page * (kMlaTokenBytes + kMlaScaleBytes), kMlaTokenBytes) * kMlaTokenBytes;
}

Formula bytes_of_block(const Formula& layout, const Formula& page) {
  return layout * (page * kV32TokenBytes) + !layout * bytes_of_v4(page) +
         parameter("block_gap") * kV32TokenBytes;
}

}  // namespace

Formula mla_blocks(const std::string& given, CacheOfRow cache_of,
                   std::int64_t (MlaCacheShape::*count)() const) {
  return in_call(
      computed(given, [cache_of = std::move(cache_of),
                       count](const auto& values) { return (cache_of(*values.row).*count)(); }),
      parameter(given));
}

MlaCacheMembers::MlaCacheMembers(const TablePart<plumb_mla_cache>& cache, MlaLayouts layouts,
                                 const std::string& prefix, const WordChoices& dialects,
                                 const CacheOfRow& cache_of)
    : part(cache), blocks(mla_blocks(prefix + "blocks", cache_of, &MlaCacheShape::blocks)) {
  using C = plumb_mla_cache;
  page = part.scalar("page", &C::page, parameter(prefix + "page"));
  dialect = part.word("dialect", &C::dialect, dialects);
  if (layouts == MlaLayouts::v4) {
    layout = part.scalar("layout", &C::layout, PLUMB_MLA_V4);
    part.scalar("scale_reading", &C::scale_reading, PLUMB_SCALE_FP32);
  } else {
    layout =
        part.word("layout", &C::layout, {"layout", {{"v4", PLUMB_MLA_V4}, {"v32", PLUMB_MLA_V32}}});
    part.word(
        "scale_reading", &C::scale_reading,
        {"scale_reading",
         {{"fp32", PLUMB_SCALE_FP32}, {"bf16", PLUMB_SCALE_BF16}, {"e8m0", PLUMB_SCALE_E8M0}}});
  }
  block_bytes =
      part.scalar("block_stride_bytes", &C::block_stride_bytes,
                  layouts == MlaLayouts::v4 ? bytes_of_v4(page) : bytes_of_block(layout, page));
  part.scalar("num_blocks", &C::num_blocks,
              mla_blocks(prefix + "blocks", cache_of, &MlaCacheShape::num_blocks));
}

void MlaCacheMembers::add_tensor(const std::string& name) {
  part.input("data", &plumb_mla_cache::data, {blocks, block_bytes}, "blocks of the paged cache")
      .named(name);
}

void add_mla_candidates(TablePart<plumb_mla_candidates> candidates, const std::string& name,
                        const Formula& width, const Formula& requests, const Formula& queries) {
  using C = plumb_mla_candidates;
  const Formula ragged = word_is("form", "ragged"), gap = parameter("strided") * 3;
  TablePart<C> dense = candidates.when(!ragged), lists = candidates.when(ragged);
  const Formula query_stride = dense.scalar("query_stride", &C::query_stride, width + gap);
  const Formula request_stride =
      dense.scalar("request_stride", &C::request_stride, queries * query_stride + gap);
  dense.input("indices", &C::indices, {requests, queries, width}, "slots; -1 is skipped")
      .named(name + "_indices")
      .strides({request_stride, query_stride, 1});
  lists.input("indices", &C::indices, {requests * queries * width}, "slots; -1 is skipped")
      .named(name + "_indices");
  dense.input("lengths", &C::lengths, {requests}, "columns that count")
      .named(name + "_lengths")
      .when(!word_is("lengths", "none"));
  lists.input("indptr", &C::indptr, {requests * queries + 1}, "first entry of each row")
      .named(name + "_indptr");
}

void place_mla_cache(const MlaSide& side, TensorSpec& spec) {
  if (side.width == 0 || spec.name != side.cache_name()) return;
  spec.sparse |= side.cache.far;
  for (std::int64_t i = 0; side.cache.far && i < side.cache.blocks_that_exist(); ++i) {
    spec.placement.push_back(side.cache.address(i));
  }
}

}  // namespace plumb::cases
