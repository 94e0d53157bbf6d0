// SPDX-License-Identifier: Apache-2.0
#include "decode/graphs/graph_mode.h"

#include <stdexcept>

namespace plumb::device::decode {

namespace {

struct ModeKinds {
  GraphKind uniform, mixed;
};

ModeKinds kinds_of(GraphMode mode) {
  using enum GraphKind;
  switch (mode) {
    case GraphMode::none: break;
    case GraphMode::piecewise: return {piecewise, piecewise};
    case GraphMode::full: return {full, full};
    case GraphMode::full_decode_only: return {full, none};
    case GraphMode::full_and_piecewise: return {full, piecewise};
    case GraphMode::breakable: return {breakable, breakable};
  }
  return {none, none};
}

bool has_full(GraphMode mode) { return kinds_of(mode).uniform == GraphKind::full; }

bool splits(GraphMode mode) {
  const auto [uniform, mixed] = kinds_of(mode);
  return mixed == GraphKind::piecewise || uniform == GraphKind::breakable;
}

[[noreturn]] void refuse(GraphMode mode, const ModelTraits& model, const char* why) {
  throw std::invalid_argument(std::string(name_of(mode)) + " graphs of " + model.name + ": " + why);
}

}  // namespace

std::string no_graph_of(const BatchDescriptor& batch) {
  return "no graph of " + std::to_string(batch.tokens) + " tokens, " +
         std::to_string(batch.requests) + " requests";
}

std::string_view name_of(GraphMode mode) {
  switch (mode) {
    case GraphMode::none: return "NONE";
    case GraphMode::piecewise: return "PIECEWISE";
    case GraphMode::full: return "FULL";
    case GraphMode::full_decode_only: return "FULL_DECODE_ONLY";
    case GraphMode::full_and_piecewise: return "FULL_AND_PIECEWISE";
    case GraphMode::breakable: return "BREAKABLE";
  }
  return "";
}

void require_supported(GraphMode mode, const ModelTraits& model, std::int64_t query_tokens) {
  if (has_full(mode) && model.full_graphs == FullGraphSupport::never) {
    refuse(mode, model, "its attention cannot be captured");
  }
  if (has_full(mode) && query_tokens > 1 &&
      model.full_graphs == FullGraphSupport::uniform_single_token) {
    refuse(mode, model,
           "its attention can be captured for one query token only (UNIFORM_SINGLE_TOKEN_DECODE)");
  }
  if (splits(mode) && !model.breaks) refuse(mode, model, "no segment of it breaks");
}

GraphKind kind_of(GraphMode mode, const ModelTraits& model, const BatchDescriptor& batch) {
  const auto [uniform, mixed] = kinds_of(mode);
  if (batch.uniform) return uniform;
  const bool too_much = mixed == GraphKind::full && model.full_graphs != FullGraphSupport::always;
  return too_much ? GraphKind::none : mixed;
}

}  // namespace plumb::device::decode
