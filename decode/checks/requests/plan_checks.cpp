// SPDX-License-Identifier: Apache-2.0
//
// Checks the rows of a plan. The order is that of cause and effect: batch, computed tokens, tokens,
// lengths.
#include <fmt/format.h>

#include <algorithm>

#include "decode/checks/requests/model_entries.h"
#include "decode/checks/requests/request_model.h"

namespace plumb::cases {

using device::decode::Cache;
using device::decode::PrefillChunk;
using device::decode::StepPlan;

namespace {

std::optional<WrongPlan> differs(const char* part, const std::string& what, std::int64_t got,
                                 std::int64_t right) {
  if (got == right) return std::nullopt;
  return WrongPlan{part, fmt::format("{} {}, expected {}", what, got, right)};
}

std::string name_of_row(std::uint64_t request, std::int64_t row) {
  return fmt::format("request {} in row {}", request, row);
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Checks that chunks follow each other and hold whole requests.
std::optional<WrongPlan> check_chunk(const PrefillChunk& chunk, std::int64_t request,
                                     std::int64_t token, std::int64_t tokens, std::int64_t keys) {
  const char* const part = "prefill plan";
  if (auto wrong = differs(part, "a chunk begins at row", chunk.first_request, request)) {
    return wrong;
  }
  if (auto wrong = differs(part, "a chunk begins at token", chunk.first_token, token)) return wrong;
  if (auto wrong = differs(part, "tokens of a chunk:", chunk.tokens, tokens)) return wrong;
  return differs(part, "keys of a chunk:", chunk.keys, keys);
}

}  // namespace

std::optional<WrongPlan> RequestModel::check_rows(const Rows& rows, const StepPlan& plan) const {
  const std::int64_t tokens = rows.empty() ? 0 : rows.back().first_token + rows.back().tokens;
  if (auto wrong = differs("batch", "planned requests:", plan.live_requests, std::ssize(rows))) {
    return wrong;
  }
  if (auto wrong = differs("batch", "planned tokens:", plan.live_tokens, tokens)) return wrong;
  if (plan.requests < std::ssize(rows) || plan.tokens < tokens) {
    return WrongPlan{"batch", fmt::format("the plan has {} rows and {} tokens for {} requests and "
                                          "{} tokens",
                                          plan.requests, plan.tokens, rows.size(), tokens)};
  }
  for (const PlanRow& row : rows) {
    if (auto wrong = check_row(row, plan)) return wrong;
  }
  return std::nullopt;
}

std::optional<WrongPlan> RequestModel::check_row(const PlanRow& row, const StepPlan& plan) const {
  const std::string name = name_of_row(row.story->id, row.row);
  if (auto wrong =
          differs("query_start_loc", name + " ends before token",
                  plan.query_start_loc.at(at(row.row + 1)), row.first_token + row.tokens)) {
    return wrong;
  }
  if (auto wrong = check_shift(row, plan)) return wrong;
  for (std::int64_t i = 0; i < row.tokens; ++i) {
    if (auto wrong = check_token(row, i, plan)) return wrong;
  }
  return check_length(row, plan);
}

// If position and length are wrong by the same number, the host's count of computed tokens is
// wrong.
std::optional<WrongPlan> RequestModel::check_shift(const PlanRow& row, const StepPlan& plan) const {
  const Story& story = *row.story;
  const std::int64_t first = plan.positions.at(at(row.first_token));
  if (first == row.first || plan.seq_lens.at(at(row.row)) - row.end() != first - row.first) {
    return std::nullopt;
  }
  const std::string text = fmt::format("{} begins at position {}, expected {}",
                                       name_of_row(story.id, row.row), first, row.first);
  if (story.is_new && story.behind != 0) {
    return WrongPlan{"prefix hit", fmt::format("{}: request {} already has {} of its tokens", text,
                                               story.behind, story.prefix)};
  }
  const bool rejected = story.planned_end > story.computed;
  return WrongPlan{"computed tokens",
                   text + (rejected ? ": tokens of the previous step were rejected" : "")};
}

std::optional<WrongPlan> RequestModel::check_token(const PlanRow& row, std::int64_t i,
                                                   const StepPlan& plan) const {
  const Story& story = *row.story;
  const std::int64_t position = row.first + i;
  const std::size_t token = at(row.first_token + i);
  const std::string name =
      fmt::format("position {} of {}", position, name_of_row(story.id, row.row));
  if (auto wrong =
          differs("positions", name + " is planned as", plan.positions.at(token), position)) {
    return wrong;
  }
  if (auto wrong =
          differs("token_to_req", name + " belongs to row", plan.token_to_req.at(token), row.row)) {
    return wrong;
  }
  const auto key_at = [&](std::int64_t p) {
    return p < story.end() ? story.tokens[at(p)] : token_key(story.id, p, story.rejections);
  };
  const auto other_token = [&](const char* part, std::int64_t got, std::int64_t right) {
    return WrongPlan{part, fmt::format("{} gets {}, expected {}", name, name_of_token(got),
                                       name_of_token(right))};
  };
  if (plan.token_keys.at(token) != key_at(position)) {
    return other_token("token_keys", plan.token_keys[token], key_at(position));
  }
  if (plan.next_token_keys.at(token) != key_at(position + 1)) {
    return other_token("next_token_keys", plan.next_token_keys[token], key_at(position + 1));
  }
  return differs("state_lens", name + " scores entries:", plan.state_lens.at(token),
                 (position + 1) / geometry_.index_ratio);
}

std::optional<WrongPlan> RequestModel::check_length(const PlanRow& row,
                                                    const StepPlan& plan) const {
  const std::int64_t length = plan.seq_lens.at(at(row.row));
  auto wrong =
      differs("seq_lens", name_of_row(row.story->id, row.row) + " has length", length, row.end());
  if (!wrong) return wrong;
  if (length == row.story->planned_end) wrong->text += ": this was the length in the previous step";
  if (length > row.end()) wrong->text += ": the request has no more tokens";
  return wrong;
}

// Checks the counts of requests that decode, and their packing to the longest if they differ.
std::optional<WrongPlan> RequestModel::check_packed(const Rows& rows, const StepPlan& plan) const {
  std::int64_t decodes = 0, tokens = 0, longest = 0;
  bool uniform = true, uneven = false;
  for (const PlanRow& row : rows) {
    uniform = uniform && !row.prefill && row.tokens == geometry_.query_tokens();
    if (row.prefill) continue;
    uneven = uneven || (decodes > 0 && row.tokens != rows.front().tokens);
    ++decodes;
    tokens += row.tokens;
    longest = std::max(longest, row.tokens);
  }
  if (plan.uniform && !uniform) {
    return WrongPlan{"batch", "the batch is planned as uniform, but is not uniform"};
  }
  if (auto wrong = differs("batch", "requests that decode:", plan.num_decodes, decodes)) {
    return wrong;
  }
  if (auto wrong = differs("batch", "tokens that decode:", plan.num_decode_tokens, tokens)) {
    return wrong;
  }
  if (decodes == 0) return std::nullopt;
  if (auto wrong = differs("batch", "most tokens that decode:", plan.next_n, longest)) {
    return wrong;
  }
  if (!uneven) return std::nullopt;
  if (!plan.packed) return WrongPlan{"batch", "requests that decode differ and are not packed"};
  for (const PlanRow& row : rows) {
    if (row.prefill) break;
    const std::string name = name_of_row(row.story->id, row.row);
    if (auto wrong = differs("decode_lens", name + " decodes tokens:",
                             plan.decode_lens.at(at(row.row)), row.tokens)) {
      return wrong;
    }
    for (std::int64_t i = 0; i < longest; ++i) {
      const std::int64_t token = std::min(i, row.tokens - 1);
      const std::int64_t right = (row.first + token + 1) / geometry_.index_ratio;
      const auto got = plan.packed_state_lens.at(at(row.row * longest + i));
      if (auto wrong = differs("packed_state_lens", name + " scores entries:", got, right)) {
        return wrong;
      }
    }
  }
  return std::nullopt;
}

// Checks the chunks of prefills. The host may choose how many requests share a chunk.
std::optional<WrongPlan> RequestModel::check_prefills(const Rows& rows,
                                                      const StepPlan& plan) const {
  const auto& prefill = plan.prefill;
  const char* const part = "prefill plan";
  auto row = std::ranges::find_if(rows, [](const PlanRow& one) { return one.prefill; });
  std::size_t number = 0, token = 0, offset = 0;
  for (const PrefillChunk& chunk : prefill.chunks) {
    if (row == rows.end() || chunk.requests < 1) return WrongPlan{part, "a chunk has no request"};
    const PlanRow& first = *row;
    std::int64_t keys = 0;
    for (std::int64_t i = 0; i < chunk.requests && row != rows.end(); ++i, ++row, ++number) {
      const std::string name = name_of_row(row->story->id, row->row);
      for (const Cache cache : {Cache::c4a, Cache::c128a}) {
        const auto kind = static_cast<std::size_t>(cache);
        if (auto wrong =
                differs(part, name + " gathers states:", prefill.state_counts[kind].at(number),
                        row->end() / tokens_of_entry(kind))) {
          return wrong;
        }
      }
      if (auto wrong = differs(part, name + " has its first key at",
                               prefill.key_offsets.at(offset++), keys)) {
        return wrong;
      }
      for (std::int64_t p = row->first; p < row->end(); ++p, ++token) {
        const std::int64_t end = keys + (p + 1) / geometry_.index_ratio;
        if (prefill.starts.at(token) == keys && prefill.ends.at(token) == end) continue;
        return WrongPlan{
            part, fmt::format("position {} of {} attends keys {} to {}, expected {} to {}", p, name,
                              prefill.starts[token], prefill.ends.at(token), keys, end)};
      }
      keys += row->end() / geometry_.index_ratio;
    }
    const PlanRow& last = *std::prev(row);
    const std::int64_t tokens = last.first_token + last.tokens - first.first_token;
    if (auto wrong = check_chunk(chunk, first.row, first.first_token, tokens, keys)) return wrong;
    if (auto wrong =
            differs(part, name_of_row(last.story->id, last.row) + " has its last key before",
                    prefill.key_offsets.at(offset++), keys)) {
      return wrong;
    }
  }
  if (row == rows.end()) return std::nullopt;
  return WrongPlan{part, name_of_row(row->story->id, row->row) + " is in no chunk"};
}

}  // namespace plumb::cases
