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
  piecewise,           // everything but indexer and attention
  full,                // everything
  full_decode_only,    // uniform decode FULL, mixed batches eager
  full_and_piecewise,  // uniform decode FULL, mixed batches PIECEWISE
  breakable            // a capture that stops for indexer and attention
};
std::string_view name_of(GraphMode mode);  // "FULL_AND_PIECEWISE"

// How one batch is run: a mode is a choice of these.
enum class GraphKind { none, piecewise, full, breakable };

// A batch as dispatch sees it. `uniform`: every request has the same query tokens.
struct BatchDescriptor {
  std::int64_t tokens = 0, requests = 0;
  bool uniform = true;
  // What else a capture depends on: 0, unless a policy makes shapes follow the data.
  std::int64_t slice = 0;
  auto operator<=>(const BatchDescriptor&) const = default;
};
std::string no_graph_of(const BatchDescriptor& batch);  // "no graph of 8 tokens, 8 requests"

// Which batches may be captured whole.
enum class FullGraphSupport { never, uniform_single_token, uniform_batch, always };

// What a model is for those who choose a mode.
struct ModelTraits {
  std::string name;
  FullGraphSupport full_graphs = FullGraphSupport::uniform_batch;
  GraphMode automatic_mode = GraphMode::full_and_piecewise;  // unless the user sets one
  bool breaks = true;                                        // whether a segment does
};

// Throws std::invalid_argument, which names both, for a mode that the model's steps of so many
// query tokens per request cannot have.
void require_supported(GraphMode mode, const ModelTraits& model, std::int64_t query_tokens);

// A batch of a model in a mode.
GraphKind kind_of(GraphMode mode, const ModelTraits& model, const BatchDescriptor& batch);

class ModePolicy {
 public:
  virtual ~ModePolicy() = default;
  // The user's choice, if there is one. A default that wins over it takes the mode away that
  // somebody set to get around a fault   [vLLM #43746].
  virtual GraphMode choose(std::optional<GraphMode> explicit_choice, GraphMode automatic) const {
    return explicit_choice.value_or(automatic);
  }
  // The drafter's step is wrapped as the target's is. Left out, it runs eagerly: right, but each
  // step pays for its launches   [vLLM #43746].
  virtual GraphMode drafter(std::optional<GraphMode> explicit_choice, GraphMode automatic) const {
    return choose(explicit_choice, automatic);
  }
};

}  // namespace plumb::device::decode
