// SPDX-License-Identifier: Apache-2.0
#include "decode/checks/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "decode/checks/cache_checks.h"

namespace plumb::cases {

namespace {

using device::decode::Attention;
using device::decode::Cache;
using device::decode::CallPlace;
using device::decode::Geometry;
using device::decode::StepPlan;
using Slots = std::vector<std::int64_t>;

Slots given(const CallRecorder::CallRecording& attention, const std::string& side,
            std::int64_t token) {
  const HostTensor& indices = attention.tensors.at(side + "_indices");
  const auto* first = indices.data<std::int32_t>();
  if (attention.tensors.contains(side + "_lengths")) {
    const auto length = attention.tensors.at(side + "_lengths").data<std::int32_t>()[token];
    first += token * indices.columns();
    return {first, first + std::clamp<std::int64_t>(length, 0, indices.columns())};
  }
  const auto* indptr = attention.tensors.at(side + "_indptr").data<std::int32_t>();
  const auto clamp = [&](std::int32_t at) {
    return std::clamp<std::int64_t>(at, 0, indices.elements());
  };
  const std::int64_t begin = clamp(indptr[token]);
  return {first + begin, first + std::max(begin, clamp(indptr[token + 1]))};
}

// Row of the request that the token belongs to.
std::int64_t request_of(const StepPlan& plan, std::int64_t token) {
  const auto& starts = plan.query_start_loc;
  return std::upper_bound(starts.begin(), starts.end(), token) - starts.begin() - 1;
}

// Slots of entries [begin, end) of the request that the token belongs to.
Slots own(const StepPlan& plan, const Geometry& geometry, Cache cache, std::int64_t token,
          std::int64_t begin, std::int64_t end) {
  const auto which = static_cast<std::size_t>(cache);
  const std::int64_t request = request_of(plan, token);
  const std::int64_t page = geometry.pages[which];
  const auto* table =
      plan.block_tables[which].data() + request * geometry.blocks_per_request(cache);
  Slots slots;
  for (std::int64_t i = begin; i < end; ++i) slots.push_back(table[i / page] * page + i % page);
  return slots;
}

std::string numbers(const Slots& slots) {
  constexpr std::size_t kMost = 6;
  const auto end = slots.begin() + static_cast<std::ptrdiff_t>(std::min(slots.size(), kMost));
  return fmt::format("{} ({}{})", slots.size(), fmt::join(slots.begin(), end, ", "),
                     slots.size() > kMost ? ", ..." : "");
}

std::optional<std::string> compare(std::int64_t token, const char* what, const Slots& got,
                                   const Slots& wanted) {
  if (got == wanted) return std::nullopt;
  return fmt::format("token {} is given {} {}, but its request has {}", token, what, numbers(got),
                     numbers(wanted));
}

std::optional<std::string> compare_chosen(std::int64_t token, Slots got, Slots all,
                                          std::int64_t k) {
  const auto wanted =
      static_cast<std::size_t>(std::min<std::int64_t>(k, static_cast<std::int64_t>(all.size())));
  std::sort(got.begin(), got.end());
  std::sort(all.begin(), all.end());
  const bool distinct = std::adjacent_find(got.begin(), got.end()) == got.end();
  if (got.size() == wanted && distinct &&
      std::includes(all.begin(), all.end(), got.begin(), got.end())) {
    return std::nullopt;
  }
  return fmt::format("token {} is given slots {}, expected {} of its request's own {}", token,
                     numbers(got), wanted, numbers(all));
}

// Kind of the calling layer. The drafter's layer has only a window.
Attention kind_of(const CallPlace& place, const Geometry& geometry) {
  if (place.draft) return Attention::window;
  return geometry.layers.at(static_cast<std::size_t>(place.layer));
}

const device::decode::PrefillChunk& chunk_of(const CallPlace& place, const StepPlan& plan) {
  return plan.prefill.chunks.at(static_cast<std::size_t>(place.chunk));
}

// Workspace rows [first, first + count).
Slots rows_from(std::int64_t first, std::int64_t count) {
  Slots rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// Compares the compressed states that a token is given with all states of its request.
std::optional<std::string> compare_states(std::int64_t token, Attention kind, const Slots& got,
                                          const Slots& all, const Geometry& geometry) {
  return kind == Attention::c4a ? compare_chosen(token, got, all, geometry.top_k)
                                : compare(token, "states", got, all);
}

std::int64_t tokens_of_state(Attention kind) {
  return kind == Attention::c4a ? device::decode::kC4a : device::decode::kC128a;
}

// Whether the entries are distinct numbers in [0, of).
bool names_entries(const std::int32_t* entries, std::int64_t count, std::int64_t of) {
  std::vector<std::int32_t> named(entries, entries + count);
  std::sort(named.begin(), named.end());
  if (std::adjacent_find(named.begin(), named.end()) != named.end()) return false;
  return named.empty() || (named.front() >= 0 && named.back() < of);
}

}  // namespace

std::optional<std::string> wrong_candidates(const CallRecorder::CallRecording& attention,
                                            const StepPlan& plan, const Geometry& geometry) {
  const Attention kind = kind_of(attention.place, geometry);
  // In V3.2 one call attends all tokens; in V4 this call attends the decode tokens.
  const std::int64_t rows = kind == Attention::tokens ? plan.attended : plan.decode_rows();
  for (std::int64_t token = 0; token < rows; ++token) {
    const bool live = token < plan.live_tokens;
    const std::int64_t end = live ? plan.positions[static_cast<std::size_t>(token)] + 1 : 0;
    if (kind == Attention::tokens) {
      const Slots all = own(plan, geometry, Cache::window, token, 0, end);
      const Slots got = given(attention, "main", token);
      if (auto line = compare_chosen(token, got, all, geometry.top_k)) return line;
      continue;
    }
    const std::int64_t begin = std::max<std::int64_t>(end - geometry.window, 0);
    const Slots window = own(plan, geometry, Cache::window, token, begin, end);
    if (auto line = compare(token, "window slots", given(attention, "main", token), window)) {
      return line;
    }
    if (kind == Attention::window) continue;
    const Cache cache = kind == Attention::c4a ? Cache::c4a : Cache::c128a;
    const Slots states = own(plan, geometry, cache, token, 0, end / tokens_of_state(kind));
    const Slots got = given(attention, "extra", token);
    if (auto line = compare_states(token, kind, got, states, geometry)) return line;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_prefill_candidates(const CallRecorder::CallRecording& attention,
                                                    const StepPlan& plan,
                                                    const Geometry& geometry) {
  const Attention kind = kind_of(attention.place, geometry);
  const device::decode::PrefillChunk& chunk = chunk_of(attention.place, plan);
  for (std::int64_t i = 0; i < chunk.tokens; ++i) {
    const std::int64_t token = chunk.first_token + i, request = request_of(plan, token);
    const auto row = static_cast<std::size_t>(request);
    const std::int64_t end = plan.positions[static_cast<std::size_t>(token)] + 1;
    const std::int64_t query = plan.query_start_loc[row + 1] - plan.query_start_loc[row];
    const std::int64_t before = plan.seq_lens[row] - query;  // tokens in front of the chunk
    const std::int64_t gathered = before - std::min(before, geometry.window - 1);
    const std::int64_t begin = std::max<std::int64_t>(end - geometry.window, 0);
    const std::int64_t first = (request - chunk.first_request) * geometry.workspace_rows(kind);
    Slots states = given(attention, "kv", i);
    const auto in_window = std::min(end - begin, std::ssize(states));
    const Slots window(states.end() - in_window, states.end());
    states.resize(states.size() - static_cast<std::size_t>(in_window));
    const Slots own_window =
        rows_from(first + geometry.state_rows(kind) + begin - gathered, end - begin);
    if (auto line = compare(token, "window rows", window, own_window)) return line;
    const std::int64_t made = kind == Attention::window ? 0 : end / tokens_of_state(kind);
    if (auto line = compare_states(token, kind, states, rows_from(first, made), geometry)) {
      return line;
    }
  }
  return std::nullopt;
}

std::optional<WrongTopK> wrong_top_k(const CallRecorder::CallRecording& reader,
                                     const StepPlan& plan, const Geometry& geometry) {
  const bool chunk = reader.op == "combine_topk_swa_indices_ragged";
  if (!chunk && reader.op != "compute_global_topk_ragged_indices_and_indptr" &&
      reader.op != "compute_global_topk_indices_and_lens" && reader.op != "v32_paged_kv_indices") {
    return std::nullopt;
  }
  const Attention kind = kind_of(reader.place, geometry);
  if (kind != Attention::c4a && kind != Attention::tokens) return std::nullopt;
  const HostTensor& top_k = reader.tensors.at("topk_indices");
  const std::int64_t first = chunk ? chunk_of(reader.place, plan).first_token : 0;
  for (std::int64_t row = 0; row < top_k.rows(); ++row) {
    const std::int64_t states =
        std::max(plan.state_lens[static_cast<std::size_t>(first + row)], std::int32_t{0});
    const auto* entries = top_k.row<std::int32_t>(row);
    const std::int64_t kept = std::min(states, geometry.top_k);
    if (!names_entries(entries, kept, states)) {
      const bool prefill = first + row >= plan.decode_rows();
      return WrongTopK{prefill ? "top_k_per_row_prefill" : "top_k_per_row_decode",
                       fmt::format("the top-k of token {} does not consist of {} of its {} states",
                                   first + row, kept, states)};
    }
    const auto* end = entries + geometry.top_k;
    if (std::any_of(entries + kept, end, [](std::int32_t entry) { return entry != -1; })) {
      return WrongTopK{"fill_rows", fmt::format("the top-k of token {} has {} states and no -1 "
                                                "after them",
                                                first + row, states)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> wrong_compressed_slot(const CallRecorder::CallRecording& compression,
                                                 const StepPlan& plan, const Geometry& geometry) {
  const Cache cache =
      kind_of(compression.place, geometry) == Attention::c4a ? Cache::c4a : Cache::c128a;
  const HostTensor& slots = compression.tensors.at("slot_mapping");
  for (std::int64_t token = 0; token < slots.elements(); ++token) {
    const std::int64_t wanted = compressed_slot(plan, geometry, cache, token);
    const std::int64_t got = slots.data<std::int64_t>()[token];
    if (got == wanted) continue;
    return fmt::format("token {}{} is given slot {} for the state that it completes, expected {}",
                       token, token < plan.live_tokens ? "" : " (padding)", got, wanted);
  }
  return std::nullopt;
}

}  // namespace plumb::cases
