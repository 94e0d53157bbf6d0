// SPDX-License-Identifier: Apache-2.0
//
// Cases of get_decoding_sched_meta. Every plan is right in which each block of each request belongs
// to exactly one part, so the verdict checks this and does not compare with one plan. The batch has
// live and padded requests; a padded one has length 0, and one empty block.
#include "reference/sparse_mla/get_decoding_sched_meta.h"

#include <fmt/format.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/right_values.h"
#include "cases/ops/sparse_mla/plan_defects.h"
#include "cases/ops/sparse_mla/planned_lengths.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace get_decoding_sched_meta_cases {

using reference::RequestBlocks;
using reference::Tile;
using reference::TilePlan;
using reference::TilePlanCheck;
using reference::TilePlanDefect;
using Kind = reference::TilePlanDefectKind;

using P = plumb_get_decoding_sched_meta_params;

constexpr std::int64_t kTileInts = 8;  // int32 of a tile; the last is padding

Formula members(TablePart<P>& t) {
  const Formula requests = t.scalar("requests", &P::requests);
  t.scalar("topk", &P::topk);
  const Formula extra = t.scalar("extra_topk", &P::extra_topk);
  const Formula parts = t.scalar("num_sm_parts", &P::num_sm_parts);
  t.scalar("block_n", &P::block_n);
  t.scalar("fixed_overhead", &P::fixed_overhead);
  t.given(word_is("lengths", "none"), !t.has("topk_length", &P::topk_length));
  t.given(parameter("ragged"), t.has("topk_indptr", &P::topk_indptr));
  const Formula ragged = parameter("ragged");
  const Formula given = both(!word_is("lengths", "none"), !ragged);
  t.input("topk_length", &P::topk_length, {requests, 1}, "candidates of each request").when(given);
  t.input("extra_topk_length", &P::extra_topk_length, {requests, 1}, "those in the extra cache")
      .when(both(given, extra));
  t.input("topk_indptr", &P::topk_indptr, {requests + 1, 1}, "first candidate of each request")
      .when(ragged);
  t.input("extra_topk_indptr", &P::extra_topk_indptr, {requests + 1, 1}, "those in the extra cache")
      .when(both(ragged, extra));
  t.output("tile_scheduler_metadata", &P::tile_scheduler_metadata, {parts, kTileInts},
           "requests and blocks of each part");
  t.output("num_splits", &P::num_splits, {requests + 1, 1}, "prefix sums of the parts of requests");
  return requests;
}

std::vector<Tile> tiles_of(const HostTensor& stored) {
  std::vector<Tile> tiles;
  for (std::int64_t part = 0; part < stored.rows(); ++part) {
    const auto* own = stored.row<std::int32_t>(part);
    tiles.push_back({own[0], own[1], own[2], own[3], own[4], own[5], own[6]});
  }
  return tiles;
}

std::int32_t field_of(const Tile& tile, std::int64_t column) {
  const std::int32_t fields[kTileInts] = {
      tile.begin_req,   tile.end_req,     tile.begin_block, tile.end_block,
      tile.begin_split, tile.first_split, tile.last_split,  0};
  return fields[column];
}

class TileTruth final : public Truth {
 public:
  TileTruth(std::vector<RequestBlocks> blocks, TilePlan own)
      : blocks_(std::move(blocks)), own_(std::move(own)) {}

  TensorReport compare(const HostTensor& stored, const RowMask&,
                       const ColumnRanges&) const override {
    const std::vector<Tile> tiles = tiles_of(stored);
    TensorReport report{.tensor = stored.spec().name,
                        .rows_compared = stored.rows(),
                        .elements_compared = stored.rows() * (kTileInts - 1),
                        .rows_total = stored.rows()};
    std::int64_t zeros = 0;
    for (const Tile& tile : tiles) {
      for (std::int64_t i = 0; i < kTileInts - 1; ++i) zeros += field_of(tile, i) == 0;
    }
    report.zero_share = static_cast<double>(zeros) / static_cast<double>(report.elements_compared);
    report.observability = 1 - report.zero_share;
    const TilePlanCheck check = check_tiles(tiles, blocks_);
    std::vector<PlanDefect> defects;
    for (const TilePlanDefect& defect : check.defects) {
      defects.push_back({defect.part, text_of(tiles, defect)});
    }
    if (!defects.empty()) report_defects(stored, defects, "parts", report);
    return report;
  }
  // Writes the stored plan, if it is right, or else plumb's own plan as the right values.
  void put(const HostTensor& stored, const RowMask&, const ColumnRanges& columns,
           RightValues& right) const override {
    const std::vector<Tile> tiles = tiles_of(stored);
    const bool is_right = check_tiles(tiles, blocks_).defects.empty();
    right.put(stored, {}, is_right ? columns : ColumnRanges{},
              [&](std::int64_t part, std::int64_t column) {
                const auto place = static_cast<std::size_t>(part);
                if (is_right)
                  return static_cast<std::uint32_t>(stored.row<std::int32_t>(part)[column]);
                return static_cast<std::uint32_t>(field_of(own_.tiles[place], column));
              });
  }

 private:
  // "request 3 (5 blocks)"
  std::string request_text(std::int64_t request) const {
    return fmt::format("request {} ({})", request,
                       counted(blocks_[static_cast<std::size_t>(request)].total(), "block"));
  }

  std::string text_of(const std::vector<Tile>& tiles, const TilePlanDefect& defect) const {
    const auto part = defect.part;
    const Tile tile = part < 0 ? Tile{} : tiles[static_cast<std::size_t>(part)];
    switch (defect.kind) {
      case Kind::no_request:
        return fmt::format("part {} has requests {} to {}, of {}", part, tile.begin_req,
                           tile.end_req, blocks_.size());
      case Kind::no_block:
        return fmt::format(
            "part {} has of {} the blocks [{}, {})", part, request_text(defect.request),
            defect.block, defect.request == tile.end_req ? tile.end_block : end_of(defect.request));
      case Kind::missing:
        return fmt::format("{}: block {} is in no part", request_text(defect.request),
                           defect.block);
      case Kind::twice:
        return fmt::format("{}: block {} is in part {} and in part {}",
                           request_text(defect.request), defect.block, part, defect.other_part);
      case Kind::flag:
        return fmt::format(
            "{}: part {} says that it is {}", request_text(defect.request), part,
            defect.request == tile.begin_req ? said(tile.first_split) : said(tile.last_split));
      case Kind::split:
        if (defect.other_part < 0) {
          return fmt::format("{}: part {} writes split {}", request_text(defect.request), part,
                             defect.block);
        }
        return fmt::format("{}: parts {} and {} write split {}", request_text(defect.request),
                           defect.other_part, part, defect.block);
    }
    return "";
  }
  static std::string_view said(std::int32_t split) {
    return split != 0 ? "split, and no other part has it" : "whole, and other parts have it too";
  }
  std::int64_t end_of(std::int64_t request) const {
    return blocks_[static_cast<std::size_t>(request)].total();
  }

  std::vector<RequestBlocks> blocks_;
  TilePlan own_;
};

class SchedMetaProblem final : public TableProblem<P> {
 public:
  SchedMetaProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), lengths_(row.word("lengths")) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto fill_side = [&](const char* lengths, const char* indptr, std::int64_t most,
                               std::uint64_t seed) {
      const PlannedLengths planned{lengths_, most, p_.block_n, seed};
      if (tensors.contains(lengths)) fill_planned_lengths(planned, step, tensors.at(lengths));
      if (tensors.contains(indptr)) fill_planned_indptr(planned, step, tensors.at(indptr));
    };
    fill_side("topk_length", "topk_indptr", p_.topk, mix(step.seed, 1));
    fill_side("extra_topk_length", "extra_topk_indptr", p_.extra_topk, mix(step.seed, 2));
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const std::vector<RequestBlocks> blocks = blocks_of(tensors);
    TilePlan own = reference::make_tile_plan(blocks, static_cast<std::int32_t>(p_.num_sm_parts),
                                             static_cast<std::int32_t>(p_.fixed_overhead));
    const HostTensor& tiles = tensors.at("tile_scheduler_metadata");
    const TilePlanCheck check = check_tiles(tiles_of(tiles), blocks);
    std::vector<std::int64_t> num_splits(own.num_splits.begin(), own.num_splits.end());
    for (std::size_t request = 0; check.defects.empty() && request < blocks.size(); ++request) {
      num_splits[request + 1] = num_splits[request] + check.parts[request];
    }
    return {{std::make_shared<const HostTensor>(tiles.alias()),
             std::make_shared<const TileTruth>(blocks, std::move(own)),
             {},
             promised_columns(tensors, tiles.spec())},
            expect_exact(tensors.at("num_splits"), std::move(num_splits), {})};
  }

  // For a part without work only the first number is promised (compared). Padding never is.
  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec& spec) const override {
    if (spec.name != "tile_scheduler_metadata") return {};
    ColumnRanges ranges;
    for (const Tile& tile : tiles_of(tensors.at(spec.name))) {
      ranges.push_back({0, tile.begin_req >= p_.requests ? 1 : kTileInts - 1});
    }
    return ranges;
  }

  double cost() const override {
    constexpr double kRequest = 30, kPart = 60;
    return 2000 + kRequest * static_cast<double>(p_.requests) +
           kPart * static_cast<double>(p_.num_sm_parts);
  }
  double checked_factor() const override { return 20; }

 private:
  std::int64_t length_of(const TensorSet& tensors, const std::string& side, std::int64_t otherwise,
                         std::int64_t request) const {
    const std::string dense = side + "_length", ragged = side + "_indptr";
    const std::string& name = tensors.contains(ragged) ? ragged : dense;
    if (!tensors.contains(name)) return otherwise;
    const auto* own = tensors.at(name).data<std::int32_t>() + request;
    const std::int64_t length = name == ragged ? std::int64_t{own[1]} - own[0] : own[0];
    if (length >= 0 && length <= otherwise) return length;
    throw BadRow(
        fmt::format("{}: request {} has {} of {} candidates", name, request, length, otherwise));
  }
  std::vector<RequestBlocks> blocks_of(const TensorSet& tensors) const {
    std::vector<RequestBlocks> blocks;
    for (std::int64_t request = 0; request < p_.requests; ++request) {
      blocks.push_back(reference::request_blocks(
          length_of(tensors, "topk", p_.topk, request), p_.extra_topk > 0,
          length_of(tensors, "extra_topk", p_.extra_topk, request), p_.block_n));
    }
    return blocks;
  }

  std::string lengths_;
};

}  // namespace get_decoding_sched_meta_cases

OpDefinition define_get_decoding_sched_meta() {
  using namespace get_decoding_sched_meta_cases;
  OpDefinition op;
  op.name = "get_decoding_sched_meta";
  op.summary = "which part of a split decode does which blocks of which requests";
  op.parameters = {{"requests", 4, 1, 65536, "padded batch"},
                   {"topk", 2048, 0, 1 << 24, "most candidates of a request"},
                   {"extra_topk", 0, 0, 1 << 24, "most of them in the extra cache; 0: it has none"},
                   {"num_sm_parts", 132, 1, 4096, "parts that the work is divided into"},
                   {"block_n", 64, 1, 4096, "candidates of a block"},
                   {"fixed_overhead", 5, 0, 1024, "what a request costs beside its blocks"},
                   {"ragged", 0, 0, 1, "1: ranges of a list in place of lengths"}};
  op.word_parameters = {{"lengths",
                         {"full", "random", "borders", "one_long", "zeros", "none"},
                         "of the requests: all, any, around blocks, one of all among ones, zeros "
                         "among any; none: no tensor of lengths"}};
  op.make_problem = make_problem_of<SchedMetaProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
