// SPDX-License-Identifier: Apache-2.0
//
// Asks whether candidates fail, as many at a time as there are jobs, and each candidate only once.
// The number of jobs may change which candidates are asked, but never the result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plumb::bisect {

double seconds_now();  // of a monotonic clock

// The value of every parameter of a case, by name, spelled as on a command line.
using Candidate = std::map<std::string, std::string>;

enum class Seen { same, otherwise, passes, cannot_say };
std::string name_of(Seen seen);

struct Said {
  Seen seen = Seen::cannot_say;
  std::string reason;  // why it cannot say, or in which other way it failed
  double seconds = 0;
};

// Must be thread-safe.
using Ask = std::function<Said(const Candidate&)>;

struct ProberOptions {
  Ask ask;
  // False if the candidate is not a valid case. Does not run anything.
  std::function<bool(const Candidate&)> is_possible = [](const Candidate&) { return true; };
  // Called before candidates are asked. left: expected number of remaining probes.
  std::function<void(const std::string& why, int left)> asking = [](const std::string&, int) {};
  // Called for every answer, in the order of the candidates.
  std::function<void(const Candidate&, const Said&, const std::string& why)> heard =
      [](const Candidate&, const Said&, const std::string&) {};
  // Called when a smaller failing case was found.
  std::function<void(const Candidate& before, const Candidate& after, const std::string& why)>
      took = [](const Candidate&, const Candidate&, const std::string&) {};
  int jobs = 1;
  double seconds = 0;  // time limit for asking; 0: none
};

class Prober {
 public:
  explicit Prober(ProberOptions options);

  // Index of the first candidate that fails in the same way.
  std::optional<std::size_t> first_failing(const std::vector<Candidate>& candidates,
                                           const std::string& why);
  bool fails(const Candidate& candidate, const std::string& why) {
    return first_failing({candidate}, why).has_value();
  }
  Said ask(const Candidate& candidate, const std::string& why);
  // Adds an answer that is already known, from a journal.
  void remember(const Candidate& candidate, Said said);

  void expect(int left) { left_ = left; }
  void take(const Candidate& before, const Candidate& after, const std::string& why) {
    if (before != after) options_.took(before, after, why);
  }

  bool is_possible(const Candidate& candidate) const { return options_.is_possible(candidate); }
  bool out_of_time() const { return out_of_time_; }
  std::int64_t asked() const { return asked_; }

 private:
  void ask_all(const std::vector<Candidate>& candidates, const std::string& why);
  bool time_is_over();

  ProberOptions options_;
  std::map<Candidate, Said> known_;
  std::int64_t asked_ = 0;
  int left_ = 0;
  bool out_of_time_ = false;
  double start_;
};

}  // namespace plumb::bisect
