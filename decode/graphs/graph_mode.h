// SPDX-License-Identifier: Apache-2.0
//
// Which parts of a step are replayed from graphs, and for which batches   [10.1, 10.2, 10.5].
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb::device::decode {

enum class GraphMode {
  none,
  piecewise,           // everything except indexer and attention
  full,                // everything
  full_decode_only,    // uniform decode batches FULL, mixed batches eager
  full_and_piecewise,  // uniform decode batches FULL, mixed batches PIECEWISE
  breakable            // one capture, interrupted for indexer and attention
};
std::string_view name_of(GraphMode mode);  // "FULL_AND_PIECEWISE"

// How one batch is run. A GraphMode chooses one of these for each batch.
enum class GraphKind { none, piecewise, full, breakable };

// A batch as dispatch sees it. `uniform`: every request has the maximum number of query tokens.
struct BatchDescriptor {
  std::int64_t tokens = 0, requests = 0;
  bool uniform = true;
  // Further part of the key of a capture: 0, unless a policy makes shapes depend on the data.
  std::int64_t slice = 0;
  auto operator<=>(const BatchDescriptor&) const = default;
};
// Text of an error: "no graph of 8 tokens, 8 requests".
std::string no_graph_of(const BatchDescriptor& batch);

// Batches that a model can capture as one FULL graph.
enum class FullGraphSupport { never, uniform_single_token, uniform_batch, always };

// Properties of a model that decide which graph modes it supports.
struct ModelTraits {
  std::string name;
  FullGraphSupport full_graphs = FullGraphSupport::uniform_batch;
  GraphMode automatic_mode = GraphMode::full_and_piecewise;  // used unless the user sets a mode
  bool breaks = true;                                        // whether a segment breaks the graph
};

// Throws std::invalid_argument if the model does not support the mode with this many query tokens
// per request. The message names model and mode.
void require_supported(GraphMode mode, const ModelTraits& model, std::int64_t query_tokens);

// Kind of graph for a batch of this model in this mode.
GraphKind kind_of(GraphMode mode, const ModelTraits& model, const BatchDescriptor& batch);

class ModePolicy {
 public:
  virtual ~ModePolicy() = default;
  // The mode that the user chose, else the automatic one. If a default replaced the user's choice,
  // a mode set to work around a fault would be lost   [vLLM #43746].
  virtual GraphMode choose(std::optional<GraphMode> explicit_choice, GraphMode automatic) const {
    return explicit_choice.value_or(automatic);
  }
  // The mode of the drafter's step: by default chosen as the target's. A drafter that is left
  // without graphs gives right results, but each step pays for its launches   [vLLM #43746].
  virtual GraphMode drafter(std::optional<GraphMode> explicit_choice, GraphMode automatic) const {
    return choose(explicit_choice, automatic);
  }
};

}  // namespace plumb::device::decode
