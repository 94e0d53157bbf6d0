// SPDX-License-Identifier: Apache-2.0
#include "decode/schedule/decode_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "cases/tables/case_file.h"
#include "decode/models/v32_model.h"
#include "plumb_step_case_files.h"

namespace plumb::cases {

namespace {

using device::decode::Architecture;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::Lists;

constexpr std::int64_t kUnset = -1;
constexpr std::int64_t kPromptTokens = 16;     // per step, unless the row says
constexpr std::int64_t kSampledRows = 24;      // per call, in production geometry
constexpr std::int64_t kMostTokens = 1 << 20;  // limit of `context`

template <class Enum>
std::vector<std::string_view> names_of(std::size_t count) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
  return names;
}

// Words of an enum are in the order of its enumerators.
const std::vector<WordParameter>& step_words() {
  static const std::vector<WordParameter> words{
      {"model", {"v4", "v32"}, "V4 or V3.2"},
      {"geometry", {"small", "production"}, "widths, heads and layers"},
      {"lists", {"ragged", "dense"}, "of V4's candidates"},
      {"traffic", names_of<Traffic>(17), "how the batch changes from step to step"},
      {"lengths", names_of<Lengths>(10), "of the contexts"},
      {"accepted", {"all", "some", "none"}, "of the speculated tokens"},
      {"between",
       {"nothing", "dummies", "captures", "turns"},
       "what the engine does between two steps"},
      {"order", {"forward", "reverse", "random"}, "of the simulator's threads"},
      {"policy", {"early", "late", "interleaved"}, "when the simulator runs what lies on a stream"},
      {"fault", {}, "of the library, by its name"},
      {"keep_requests", {}, "numbers of those that stay: 0,3-5; else all"},
      {"keep_steps", {}, "numbers of those that stay; else all"},
      {kModesOfRow, {}, "graph modes that it has cases of: eager,full; else all"},
      {kNamedFor, {}, "what its steps have to do: shared,evicted; else nothing"}};
  return words;
}

// Sets `value` to the row's word for `key`. Without such a word `value` does not change.
template <class Enum>
void choose(const Row& row, std::string_view key, Enum& value) {
  const std::string_view word = row.word(key);
  if (word.empty()) return;
  const auto& values = std::ranges::find(step_words(), key, &WordParameter::name)->values;
  value = static_cast<Enum>(std::ranges::find(values, word) - values.begin());
}

std::int64_t set_or(const Row& row, std::string_view parameter, std::int64_t otherwise) {
  const std::int64_t value = row.integer(parameter);
  return value == kUnset ? otherwise : value;
}

// Sizes of 1, 2, 4, ... requests up to the maximum, at most 512 tokens.
std::vector<std::int64_t> capture_sizes(const Geometry& geometry) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t requests = 1; requests < geometry.max_requests; requests *= 2) {
    sizes.push_back(requests * geometry.query_tokens());
  }
  sizes.push_back(geometry.max_decode_tokens());
  while (sizes.back() > 512) sizes.pop_back();
  return sizes;
}

Geometry small_geometry(const Row& row, const Geometry& base, Architecture architecture) {
  const std::int64_t requests = row.integer("requests");
  const std::int64_t speculated = set_or(row, "speculated", base.speculated);
  const std::int64_t prompts =
      set_or(row, "prompt_tokens", std::max(base.max_batched_tokens, kPromptTokens));
  Geometry geometry = architecture == Architecture::v32
                          ? device::decode::small_v32_geometry(requests, speculated, 64, prompts)
                          : device::decode::small_geometry(requests, speculated, prompts);
  if (const std::int64_t context = row.integer("context"); context > 0) {
    geometry.max_context = context;
  }
  geometry.capture_sizes = capture_sizes(geometry);
  geometry.drafter = architecture == Architecture::v4 && set_or(row, "drafter", 1) != 0;
  return geometry;
}

Geometry geometry_of(const Row& row, const Geometry& base) {
  Architecture architecture = base.architecture;
  choose(row, "model", architecture);
  const bool production = row.word("geometry") == "production";
  Geometry geometry = small_geometry(row, base, architecture);
  if (production) {
    const std::int64_t requests = row.integer("requests");
    geometry = architecture == Architecture::v32 ? device::decode::production_v32_geometry(requests)
                                                 : device::decode::production_geometry(requests);
  }
  geometry.lists = base.lists;
  choose(row, "lists", geometry.lists);
  geometry.fnuz = base.fnuz || row.integer("fnuz") != 0;
  geometry.frees_window = geometry.frees_window || row.integer("frees_window") != 0;
  return geometry;
}

KeepList kept(const Row& row, std::string_view key) {
  try {
    return KeepList::from(row.word(key));
  } catch (const std::invalid_argument& error) {
    throw BadRow(fmt::format("{}: {}: {}", row.where, key, error.what()));
  }
}

ScheduleShape shape_of(const Row& row, std::uint64_t seed) {
  ScheduleShape shape;
  shape.steps = row.integer("steps");
  shape.most_requests = row.integer("requests");
  shape.seed = static_cast<std::uint64_t>(row.integer("seed")) + seed;
  choose(row, "traffic", shape.traffic);
  choose(row, "lengths", shape.lengths);
  choose(row, "accepted", shape.acceptance);
  choose(row, "between", shape.between);
  shape.keep_requests = kept(row, "keep_requests");
  shape.keep_steps = kept(row, "keep_steps");
  return shape;
}

// Smallest context that is longer than the top-k keeps and has one C128A state (V4).
std::int64_t least_context(const Geometry& geometry) {
  const std::int64_t beyond_k = (geometry.top_k + 1) * geometry.index_ratio;
  return geometry.has(device::decode::Cache::c128a) ? std::max(beyond_k, device::decode::kC128a)
                                                    : beyond_k;
}

// Throws BadRow for an impossible combination before anything runs.
void require_possible(const Row& row, const ServedCase& served) {
  const Geometry& geometry = served.setup.geometry;
  if (geometry.architecture == Architecture::v32) {
    const std::int64_t query_tokens = geometry.query_tokens();
    require_supported(served.setup.mode, device::decode::v32_traits(query_tokens), query_tokens);
  }
  if (geometry.max_context < least_context(geometry)) {
    throw BadRow(fmt::format(
        "{}: context of {} tokens; with {} it is {} at least", row.where, geometry.max_context,
        geometry.architecture == Architecture::v4 ? "v4" : "v32", least_context(geometry)));
  }
  try {
    make_schedule(served.shape, geometry);
  } catch (const std::invalid_argument& error) {
    throw BadRow(fmt::format("{}: {}", row.where, error.what()));
  }
}

}  // namespace

const RowSchema& decode_step_schema() {
  static const RowSchema schema{
      kDecodeStep,
      "a decode step as it is served: metadata, layers, drafter, graphs, over a schedule",
      {{"requests", 4, 1, 512, "most requests in a batch"},
       {"steps", 4, 1, 100000, "of the schedule"},
       {"speculated", kUnset, kUnset, 8, "tokens of a request beyond the first; -1: 0"},
       {"prompt_tokens", kUnset, kUnset, 4096, "of a step, 0: no prompts; -1: 16"},
       {"drafter", kUnset, kUnset, 1, "1: a step of the drafter follows each; -1: with v4"},
       {"context", 0, 0, kMostTokens,
        "most tokens of a request, more than the top-k keeps; 0: 384"},
       {"in_flight", 0, 0, 4, "steps enqueued before the host waits; 0: 1"},
       {"frees_window", 0, 0, 1, "1: blocks that left the window go back"},
       {"fnuz", 0, 0, 1, "1: caches in e4m3fnuz on every platform"},
       {"churn", 0, 0, 1, "1: other work uses the allocator between steps"},
       {"fresh_every", 0, 0, 100000, "N: every N-th step is repeated by a new engine"},
       {"seed", 1, 0, 1000000000, "of the schedule"},
       {"weights", 1, 0, 1000000000, "seed of weights and of where blocks are"}},
      step_words()};
  return schema;
}

const std::array<GraphModeName, 6>& graph_mode_names() {
  static constexpr std::array<GraphModeName, 6> kModes{
      {{GraphMode::none, "eager", "Every step is launched op by op."},
       {GraphMode::piecewise, "piecewise",
        "Graphs of everything but indexer and attention, which run between them."},
       {GraphMode::full, "full", "One graph per captured size holds the whole step."},
       {GraphMode::full_decode_only, "full_decode_only",
        "Graphs of whole decode steps; batches with prompts run eagerly."},
       {GraphMode::full_and_piecewise, "full_and_piecewise",
        "Graphs of whole decode steps, pieces for batches with prompts."},
       {GraphMode::breakable, "breakable",
        "A capture that stops for indexer and attention, and goes on behind them."}}};
  return kModes;
}

const GraphModeName& graph_mode_name(GraphMode mode) {
  return graph_mode_names().at(static_cast<std::size_t>(mode));
}

std::string StepCase::id() const {
  return fmt::format("{}/{}/{}", kDecodeStep, row.name, graph_mode_name(mode).name);
}

namespace {

// Throws BadRow for a name that no mode has.
std::vector<GraphMode> modes_of(const Row& row) {
  std::vector<GraphMode> modes;
  std::istringstream names{std::string(row.word(kModesOfRow))};
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = std::ranges::find(graph_mode_names(), name, &GraphModeName::name);
    if (found == graph_mode_names().end()) {
      throw BadRow(fmt::format("{}: no graph mode \"{}\"", row.where, name));
    }
    modes.push_back(found->mode);
  }
  if (!modes.empty()) return modes;
  for (const GraphModeName& mode : graph_mode_names()) modes.push_back(mode.mode);
  return modes;
}

}  // namespace

std::vector<StepCase> decode_step_cases(const std::vector<CaseFile>& overrides) {
  const CaseFile own{"cases/decode_step.toml", std::string(std::begin(kStepCaseFiles)->text)};
  std::vector<StepCase> cases;
  for (const Row& row : rows_of(decode_step_schema(), own, overrides)) {
    for (const GraphMode mode : modes_of(row)) cases.push_back({row, mode});
  }
  return cases;
}

ServedCase served_case(const StepCase& which, DecodeSetup base, std::uint64_t seed) {
  const Row& row = which.row;
  ServedCase served{std::move(base), shape_of(row, seed)};
  DecodeSetup& setup = served.setup;
  setup.geometry = geometry_of(row, setup.geometry);
  setup.mode = which.mode;
  if (row.word("geometry") == "production") setup.sample = kSampledRows;
  if (const std::int64_t in_flight = row.integer("in_flight"); in_flight > 0) {
    setup.in_flight = in_flight;
  }
  choose(row, "order", setup.conditions.order);
  choose(row, "policy", setup.conditions.policy);
  setup.conditions.seed = served.shape.seed;
  setup.environment = {.seed = static_cast<std::uint64_t>(row.integer("weights")),
                       .churns = row.integer("churn") != 0,
                       .fresh_every = row.integer("fresh_every")};
  require_possible(row, served);
  return served;
}

}  // namespace plumb::cases
