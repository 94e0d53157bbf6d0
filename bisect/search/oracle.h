// SPDX-License-Identifier: Apache-2.0
//
// The one oracle of every search: `plumb run --bisect` as a child process, whose exit code is the
// verdict and whose report says what ran and how it failed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bisect/search/process.h"

namespace plumb::bisect {

// What is run: one case on one platform, if a verdict is to be about one thing.
struct Question {
  std::string which;     // --case
  std::string platform;  // ""; every simulated one
  std::vector<std::string> settings, case_files;
  std::string seed = "0", tier, plugin;
  std::string point = {};                 // --point; "": those that plumb run chooses
  std::vector<std::string> own_ops = {};  // --ops: files that declare ops of their own
};
nlohmann::json to_json(const Question& question);
// " --case … --platform …", as a shell reads them.
std::string options_text(const Question& question);

enum class Verdict { good, bad, cannot_say };
std::string name_of(Verdict verdict);  // "good", "bad", "cannot say"

// What one case did: two runs that took the same path have the same, but that a run which fails
// stops early.
struct Path {
  std::string which, platform, outcome;
  std::int64_t points = 0, launches = 0, comparisons = 0;
};

struct Answer {
  Verdict verdict = Verdict::cannot_say;
  std::string reason;     // of cannot say: skipped because …, no such case, crashed
  bool usage = false;     // cannot say because the question itself was refused
  std::string signature;  // of bad (bisect/search/signature.h)
  std::string kind;       // the signature without case and platform
  std::vector<Path> paths;
  nlohmann::json failed;  // the report's entry of the first case that failed; null if none
  double seconds = 0;
};
nlohmann::json to_json(const Answer& answer);
Answer answer_from_json(const nlohmann::json& json);

// "" if both ran the same path; else what differs. A failing arm may have stopped earlier.
std::string path_difference(const std::vector<Path>& one, const std::vector<Path>& other);

// From how the process ended and its report (null: it wrote none).
Answer interpret(const Ended& ended, const nlohmann::json& report);

class Oracle {
 public:
  // program: of plumb, this one by default. timeout: seconds that the case may take (plumb run
  // --timeout), beyond which it has failed. further: words for plumb run that are not part of what
  // is asked.
  explicit Oracle(std::string program = "/proc/self/exe", double timeout = 300,
                  std::vector<std::string> further = {});
  Answer ask(const Question& question, const std::vector<std::string>& environment = {}) const;

 private:
  std::string program_;
  double timeout_;
  std::vector<std::string> further_;
};

}  // namespace plumb::bisect
