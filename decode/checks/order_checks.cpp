// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/order_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "decode/checks/model_order.h"

namespace plumb::cases {

namespace {

// The first weight that is not the model's.
std::optional<std::string> other_weight(const CallRecorder::CallRecording& call,
                                        const std::vector<WeightOfOp>& weights,
                                        const device::decode::EngineMemory& memory) {
  for (const auto& [tensor, label] : weights) {
    const auto found = std::ranges::find(call.copies, tensor, &CallRecorder::TensorCopy::tensor);
    const auto* const block = found == call.copies.end() ? nullptr : memory.block_of(found->from);
    const std::string here = block == nullptr ? "no memory of the engine" : block->label;
    if (here != label) return fmt::format("{} is {}, not {}", tensor, here, label);
  }
  return std::nullopt;
}

}  // namespace

void check_order(WatchedStep& step) {
  const auto& engine = step.twin.engine;
  const std::vector<OpInModel> wanted =
      ops_of_model(engine.geometry(), engine.drafter() != nullptr);
  std::size_t next = 0;
  std::int64_t position = 0;
  const auto find = [&](std::string_view op, const std::string& call, std::string text) {
    step.findings.add(Detector::order, position, std::string(op), call, std::move(text));
  };
  const auto misplaced = [&](std::string_view op, const std::string& call, const char* what) {
    find(op, call, fmt::format("{} is {} the model's order of ops", op, what));
  };
  for (const auto& part : engine.parts()) {
    const auto enqueued = step.twin.recorder->latest(part.name);
    if (!part.replayed && enqueued && enqueued->tokens != part.tokens) return;  // other rows
    for (const auto& call : step.twin.recorder->enqueued(part)) {
      const bool expected = next < wanted.size() && call->op == wanted[next].op;
      if (expected || !has_its_place(call->op)) {
        if (expected) {
          const auto other = other_weight(*call, wanted[next++].weights, engine.memory());
          if (other) find(call->op, call->place.name, *other);
        }
        ++position;
        continue;
      }
      const bool left_out = next + 1 < wanted.size() && call->op == wanted[next + 1].op;
      return left_out ? misplaced(wanted[next].op, call->place.name, "left out of")
                      : misplaced(call->op, call->place.name, "called against");
    }
  }
  if (next < wanted.size()) {
    misplaced(wanted[next].op, std::string(wanted[next].op), "left out of");
  }
}

}  // namespace plumb::cases
