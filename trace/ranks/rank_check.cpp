// SPDX-License-Identifier: Apache-2.0
#include "trace/ranks/rank_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <compare>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "cases/tensors/sort_by.h"
#include "trace/element_value.h"
#include "trace/ranks/collective.h"

namespace plumb::trace {

namespace {

constexpr std::size_t kMostFound = 100;

struct CallKey {
  std::string op, collective;
  std::int64_t layer = -1;
  std::vector<std::int64_t> group;
  auto operator<=>(const CallKey&) const = default;
};

// The same call on several ranks: the index in the step of each rank.
struct Meeting {
  std::vector<std::int64_t> group;
  std::map<std::int64_t, std::size_t> calls;
};

class RankWalk {
 public:
  explicit RankWalk(const std::vector<RankStep>& ranks) {
    for (const RankStep& rank : ranks) ranks_.emplace(rank.step.rank, rank);
    if (!ranks.empty()) report_.step = ranks.front().step.step;
  }

  RankReport walk() {
    for (const Meeting& meeting : meetings()) {
      attempt([&] { check(meeting); });
    }
    return std::move(report_);
  }

 private:
  void attempt(const auto& comparison) {
    try {
      comparison();
    } catch (const NotCompared& reason) {
      ++report_.not_compared[reason.why];
    }
  }

  // In the order of the calls of the lowest rank.
  std::vector<Meeting> meetings() const {
    std::map<CallKey, std::vector<Meeting>> all;
    for (const auto& [rank, there] : ranks_) {
      std::map<CallKey, std::size_t> seen;
      for (std::size_t i = 0; i < there.step.calls.size(); ++i) {
        const TraceCall& call = there.step.calls[i];
        if (call.replicated.empty() && call.collective.empty()) continue;
        const CallKey key{place_of(there.step, i).kind(), call.collective, call.layer, call.group};
        std::vector<Meeting>& same = all[key];
        const std::size_t n = seen[key]++;
        if (n == same.size()) same.push_back({call.group.empty() ? all_ranks() : call.group, {}});
        same[n].calls.emplace(rank, i);
      }
    }
    std::vector<Meeting> ordered;
    for (auto& [key, some] : all) std::ranges::move(some, std::back_inserter(ordered));
    cases::sort_by(ordered, [](const Meeting& one) { return one.calls.begin()->second; });
    return ordered;
  }

  std::vector<std::int64_t> all_ranks() const {
    std::vector<std::int64_t> all;
    for (const auto& [rank, there] : ranks_) all.push_back(rank);
    return all;
  }

  const TraceCall& call_of(const Meeting& meeting, std::int64_t rank) const {
    return ranks_.at(rank).step.calls[meeting.calls.at(rank)];
  }

  void check(const Meeting& meeting) {
    for (const std::int64_t rank : meeting.group) {
      if (!ranks_.contains(rank)) throw NotCompared{fmt::format("rank {} has no such step", rank)};
      if (!meeting.calls.contains(rank)) {
        throw NotCompared{fmt::format("rank {} has no such call", rank)};
      }
    }
    if (meeting.calls.size() != meeting.group.size()) {
      throw NotCompared{"a rank that is not in the group has the call too"};
    }
    if (meeting.group.size() < 2) throw NotCompared{"the group has one rank"};
    const TraceCall& first = call_of(meeting, meeting.group.front());
    for (const std::int64_t rank : meeting.group) {
      if (call_of(meeting, rank).rows != first.rows) {
        throw NotCompared{"the ranks stored other rows"};
      }
    }
    for (const std::string& name : first.replicated) {
      attempt([&] { check_replicated(meeting, name); });
    }
    if (!first.collective.empty()) check_result(meeting, first.collective);
  }

  void check_replicated(const Meeting& meeting, const std::string& name) {
    bool found = false;
    for (const auto side : {&TraceCall::before, &TraceCall::after}) {
      std::map<std::int64_t, const TraceTensor*> tensors;
      for (const std::int64_t rank : meeting.group) {
        const TraceTensors& there = call_of(meeting, rank).*side;
        if (const auto one = there.find(name); one != there.end()) tensors[rank] = &one->second;
      }
      if (tensors.empty()) continue;
      found = true;
      if (tensors.size() != meeting.group.size()) {
        throw NotCompared{fmt::format("not all ranks have {}", name)};
      }
      compare(meeting, name, tensors);
    }
    if (!found) throw NotCompared{fmt::format("the call has no tensor {}", name)};
  }

  // Compares each rank's tensor with the one that most ranks have.
  void compare(const Meeting& meeting, const std::string& name,
               const std::map<std::int64_t, const TraceTensor*>& tensors) {
    std::map<std::string, std::int64_t> ranks_with;
    for (const auto& [rank, tensor] : tensors) {
      require_values(name, *tensor);
      ++ranks_with[tensor->data];
    }
    const auto usual = std::ranges::max_element(
        tensors, std::less<>(), [&](const auto& one) { return ranks_with.at(one.second->data); });
    for (const auto& [rank, tensor] : tensors) {
      ++report_.checked;
      RankFinding finding{.call = place(meeting, rank),
                          .collective = "",
                          .other = usual->first,
                          .tensor = name,
                          .first = {}};
      if (differ(*tensor, rank, *usual->second, usual->first, finding)) add(std::move(finding));
    }
  }

  static void require_values(const std::string& name, const TraceTensor& tensor) {
    if (tensor.data.empty() && tensor.elements() != 0) {
      throw NotCompared{fmt::format("the values of {} were not recorded", name)};
    }
  }

  bool differ(const TraceTensor& one, std::int64_t rank, const TraceTensor& other,
              std::int64_t other_rank, RankFinding& finding) const {
    if (one.type.name != other.type.name || one.shape != other.shape) {
      finding.first =
          fmt::format("{} of [{}], and {} of [{}]", one.type.name, fmt::join(one.shape, ", "),
                      other.type.name, fmt::join(other.shape, ", "));
      return true;
    }
    if (one.blocks != other.blocks) throw NotCompared{"the ranks stored other blocks"};
    if (one.data == other.data) return false;
    const StoredBytes a = bytes_of(one, rank), b = bytes_of(other, other_rank);
    const auto size = static_cast<std::size_t>(one.type.bytes);
    finding.of_elements = static_cast<std::int64_t>(a.bytes.size() / size);
    for (std::int64_t i = 0; i < finding.of_elements; ++i) {
      const std::byte* const here = a.bytes.data() + i * one.type.bytes;
      const std::byte* const there = b.bytes.data() + i * one.type.bytes;
      if (std::memcmp(here, there, size) == 0) continue;
      if (finding.elements++ != 0) continue;
      finding.first = fmt::format("{}: {} and {}", one.coordinates(i), element_text(one.type, here),
                                  element_text(one.type, there));
    }
    return finding.elements != 0;
  }

  void check_result(const Meeting& meeting, const std::string& collective) {
    std::vector<CollectivePart> parts;
    for (const std::int64_t rank : meeting.group) {
      const TraceCall& call = call_of(meeting, rank);
      if (call.before.size() != 1 || call.after.size() != 1) {
        throw NotCompared{"a collective has one tensor before and one after"};
      }
      CollectivePart part{&call.before.begin()->second, &call.after.begin()->second, {}, {}};
      require_values(call.before.begin()->first, *part.in);
      require_values(call.after.begin()->first, *part.out);
      if (part.in->blocks || part.out->blocks) throw NotCompared{"a collective of blocks"};
      part.given = bytes_of(*part.in, rank);
      part.got = bytes_of(*part.out, rank);
      parts.push_back(std::move(part));
    }
    const std::vector<CollectiveResult> results = check_collective(collective, parts);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ++report_.checked;
      if (results[i].elements == 0) continue;
      const std::int64_t rank = meeting.group[i];
      add({.call = place(meeting, rank),
           .collective = collective,
           .tensor = call_of(meeting, rank).after.begin()->first,
           .elements = results[i].elements,
           .of_elements = results[i].of_elements,
           .first = results[i].first});
    }
    for (const CollectivePart& part : parts) {
      for (const StoredBytes* stored : {&part.given, &part.got}) {
        if (stored->owner) stored->owner->leave_memory();
      }
    }
  }

  StoredBytes bytes_of(const TraceTensor& tensor, std::int64_t rank) const {
    if (tensor.data.empty()) return {};
    return ranks_.at(rank).bytes.of(tensor);
  }
  CallPlace place(const Meeting& meeting, std::int64_t rank) const {
    return place_of(ranks_.at(rank).step, meeting.calls.at(rank));
  }
  void add(RankFinding finding) {
    ++report_.wrong;
    if (report_.found.size() < kMostFound) report_.found.push_back(std::move(finding));
  }

  std::map<std::int64_t, RankStep> ranks_;
  RankReport report_;
};

}  // namespace

RankReport check_ranks(const std::vector<RankStep>& ranks) { return RankWalk(ranks).walk(); }

}  // namespace plumb::trace
