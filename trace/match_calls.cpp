// SPDX-License-Identifier: Apache-2.0
#include "trace/match_calls.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace plumb::trace {

namespace {

// Where a call is made: rank, layer, and op (or the engine's name of the call). Only calls with the
// same site may match.
struct CallSite {
  std::int64_t rank = 0, layer = 0;
  std::string kind;
  auto operator<=>(const CallSite&) const = default;
};
// Identifies a call within its site: its step, and the number of calls of the site before it in
// that step.
using PlaceAtSite = std::pair<std::int64_t, std::int64_t>;

CallSite site_of(const CallPlace& place) { return {place.rank, place.layer, place.kind()}; }

const CallOutline& call_at(const TraceOutline& trace, const CallRef& ref) {
  return trace[ref.file].calls[ref.call];
}

struct SiteCalls {
  std::vector<CallRef> calls;
  std::map<PlaceAtSite, CallRef> places;
  std::map<CallRef, PlaceAtSite> place_of;
  std::set<CallRef> free;
};

std::map<CallSite, SiteCalls> sites_of(const TraceOutline& trace) {
  std::map<CallSite, SiteCalls> sites;
  for (std::size_t file = 0; file < trace.size(); ++file) {
    std::map<CallSite, std::int64_t> counts;
    for (std::size_t call = 0; call < trace[file].calls.size(); ++call) {
      const CallPlace& place = trace[file].calls[call].place;
      const CallSite key = site_of(place);
      SiteCalls& site = sites[key];
      const CallRef ref{file, call};
      const PlaceAtSite at{place.step, counts[key]++};
      site.calls.push_back(ref);
      site.free.insert(ref);
      site.places.emplace(at, ref);
      site.place_of.emplace(ref, at);
    }
  }
  return sites;
}

class CallMatcher {
 public:
  CallMatcher(const TraceOutline& a, const TraceOutline& b)
      : a_(a), b_(b), sites_a_(sites_of(a)), sites_b_(sites_of(b)) {}

  Matching match(const AskRows& rows_of) {
    for (auto& [key, site] : sites_a_) {
      const auto other = sites_b_.find(key);
      if (other != sites_b_.end()) match_whole_calls(site, other->second);
    }
    match_rows(rows_of);
    list_the_rest();
    std::ranges::sort(result_.matched, [](const MatchedCalls& one, const MatchedCalls& other) {
      return std::tie(one.a, one.b) < std::tie(other.a, other.b);
    });
    std::ranges::sort(result_.carried, [](const CarriedCall& one, const CarriedCall& other) {
      return one.a < other.a;
    });
    return std::move(result_);
  }

 private:
  bool is_comparable(const CallOutline& call) const {
    return !call.inputs.empty() && !call.outputs.empty();
  }

  void match_whole_calls(SiteCalls& a, SiteCalls& b) {
    for (const CallRef& ref : a.calls) {
      const auto same_place = b.places.find(a.place_of.at(ref));
      if (same_place != b.places.end()) try_pair(a, ref, b, same_place->second);
    }
    std::map<std::string, std::deque<CallRef>> by_inputs;
    for (const CallRef& ref : b.free) by_inputs[call_at(b_, ref).inputs].push_back(ref);
    for (const CallRef& ref : a.calls) {
      if (!a.free.contains(ref)) continue;
      const auto found = by_inputs.find(call_at(a_, ref).inputs);
      if (found == by_inputs.end() || found->second.empty()) continue;
      if (try_pair(a, ref, b, found->second.front())) found->second.pop_front();
    }
  }

  bool try_pair(SiteCalls& a, const CallRef& in_a, SiteCalls& b, const CallRef& in_b) {
    const CallOutline &one = call_at(a_, in_a), &other = call_at(b_, in_b);
    if (!is_comparable(one) || !is_comparable(other) || one.inputs != other.inputs) return false;
    result_.matched.push_back(
        {.a = in_a, .b = in_b, .same = one.outputs == other.outputs, .differ = {}});
    a.free.erase(in_a);
    b.free.erase(in_b);
    return true;
  }

  // Matches rows of the calls that are still unmatched, at all sites that both traces have.
  void match_rows(const AskRows& rows_of) {
    std::vector<CallRef> left_a, left_b;
    for (auto& [key, site] : sites_a_) {
      const auto other = sites_b_.find(key);
      if (other == sites_b_.end()) continue;
      const std::vector<CallRef> in_a = comparable(a_, site), in_b = comparable(b_, other->second);
      if (in_a.empty() || in_b.empty()) continue;
      left_a.insert(left_a.end(), in_a.begin(), in_a.end());
      left_b.insert(left_b.end(), in_b.begin(), in_b.end());
    }
    if (left_a.empty()) return;
    std::ranges::sort(left_a);
    std::ranges::sort(left_b);
    const std::vector<RowDigests> rows_a = rows_of(a_, left_a), rows_b = rows_of(b_, left_b);
    pair_rows(left_a, rows_a, left_b, rows_b);
  }

  // Unmatched calls of the site whose rows may be compared: calls of plumb's ops with all values
  // recorded.
  std::vector<CallRef> comparable(const TraceOutline& trace, const SiteCalls& site) const {
    std::vector<CallRef> calls;
    for (const CallRef& ref : site.free) {
      const CallOutline& call = call_at(trace, ref);
      if (!call.place.op.empty() && is_comparable(call)) calls.push_back(ref);
    }
    return calls;
  }

  struct RowOfCall {
    std::size_t call = 0;  // index among the unmatched calls
    std::int64_t row = 0;
  };
  using RowKey = std::tuple<std::int64_t, std::int64_t, cases::RowDigest>;  // rank, layer

  void pair_rows(const std::vector<CallRef>& left_a, const std::vector<RowDigests>& rows_a,
                 const std::vector<CallRef>& left_b, const std::vector<RowDigests>& rows_b) {
    std::map<RowKey, std::deque<RowOfCall>> by_inputs;
    for (std::size_t i = 0; i < left_b.size(); ++i) {
      const CallPlace& place = call_at(b_, left_b[i]).place;
      for (std::size_t row = 0; row < rows_b[i].inputs.size(); ++row) {
        by_inputs[{place.rank, place.layer, rows_b[i].inputs[row]}].push_back(
            {i, static_cast<std::int64_t>(row)});
      }
    }
    for (std::size_t i = 0; i < left_a.size(); ++i) {
      const CallPlace& place = call_at(a_, left_a[i]).place;
      std::map<std::size_t, MatchedCalls> pairs;  // key: call of B
      for (std::size_t row = 0; row < rows_a[i].inputs.size(); ++row) {
        const auto found = by_inputs.find({place.rank, place.layer, rows_a[i].inputs[row]});
        if (found == by_inputs.end() || found->second.empty()) continue;
        const RowOfCall other = found->second.front();
        found->second.pop_front();
        MatchedCalls& pair = pairs[other.call];
        ++pair.rows;
        if (rows_a[i].outputs[row] ==
            rows_b[other.call].outputs[static_cast<std::size_t>(other.row)]) {
          continue;
        }
        pair.differ.push_back({static_cast<std::int64_t>(row), other.row});
      }
      for (auto& [call, pair] : pairs) take_rows(left_a[i], left_b[call], std::move(pair));
    }
  }

  void take_rows(const CallRef& a, const CallRef& b, MatchedCalls pair) {
    pair.a = a;
    pair.b = b;
    pair.whole = false;
    pair.same = pair.differ.empty();
    result_.matched.push_back(std::move(pair));
    sites_a_.at(site_of(call_at(a_, a).place)).free.erase(a);
    sites_b_.at(site_of(call_at(b_, b).place)).free.erase(b);
  }

  // The call of B at this place, if it is still unmatched.
  const CallRef* free_partner(const CallSite& key, const PlaceAtSite& place) const {
    const auto site = sites_b_.find(key);
    if (site == sites_b_.end()) return nullptr;
    const auto found = site->second.places.find(place);
    const bool there =
        found != site->second.places.end() && site->second.free.contains(found->second);
    return there ? &found->second : nullptr;
  }

  void list_the_rest() {
    for (auto& [key, site] : sites_a_) {
      for (const CallRef& ref : site.free) {
        const CallRef* const partner = free_partner(key, site.place_of.at(ref));
        if (partner == nullptr) {
          result_.only_a.push_back(ref);
          continue;
        }
        result_.carried.push_back({ref, *partner});
        sites_b_.at(key).free.erase(*partner);
      }
    }
    for (auto& [key, site] : sites_b_) {
      result_.only_b.insert(result_.only_b.end(), site.free.begin(), site.free.end());
    }
  }

  const TraceOutline &a_, &b_;
  std::map<CallSite, SiteCalls> sites_a_, sites_b_;
  Matching result_;
};

}  // namespace

Matching match_calls(const TraceOutline& a, const TraceOutline& b, const AskRows& rows_of) {
  return CallMatcher(a, b).match(rows_of);
}

}  // namespace plumb::trace
