// SPDX-License-Identifier: Apache-2.0
//
// The oracle that the searches for commits, environments and smaller cases use: `plumb run
// --bisect` as a child process. Its exit code is the verdict. Its report says what ran and how it
// failed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bisect/search/process.h"

namespace plumb::bisect {

// What to run. A verdict is about one case on one platform.
struct Question {
  std::string which;     // --case
  std::string platform;  // "": every simulated platform
  std::vector<std::string> settings, case_files;
  std::string seed = "0", tier, plugin;
  std::string point = {};                 // --point; "": the points that plumb run chooses
  std::vector<std::string> own_ops = {};  // --ops: Python files that declare ops
};
nlohmann::json to_json(const Question& question);
// The question as options for a shell: " --case … --platform …".
std::string options_text(const Question& question);

enum class Verdict { good, bad, cannot_say };
std::string name_of(Verdict verdict);  // "good", "bad", "cannot say"

// What one case did. Two runs of the same work have equal paths, except that a failing run stops
// early.
struct Path {
  std::string which, platform, outcome;
  std::int64_t points = 0, launches = 0, comparisons = 0;
};

struct Answer {
  Verdict verdict = Verdict::cannot_say;
  std::string reason;     // of cannot_say: skipped because …, no such case, crashed
  bool usage = false;     // true: cannot say because plumb refused the question
  std::string signature;  // of bad: see bisect/search/signature.h
  std::string kind;       // signature without case and platform
  std::vector<Path> paths;
  nlohmann::json failed;  // the report's entry for the first failed case; null if none failed
  double seconds = 0;
};
nlohmann::json to_json(const Answer& answer);
Answer answer_from_json(const nlohmann::json& json);

// Text for the difference between two paths; "" if there is none. A failing run may stop earlier
// without a difference.
std::string path_difference(const std::vector<Path>& one, const std::vector<Path>& other);

// Derives the answer from how the process ended and from its report (null if there is none).
Answer interpret(const Ended& ended, const nlohmann::json& report);

class Oracle {
 public:
  // program: path of plumb; the default is this program. timeout: seconds after which a case counts
  // as failed (plumb run --timeout). further: additional words for plumb run that do not belong to
  // the question.
  explicit Oracle(std::string program = "/proc/self/exe", double timeout = 300,
                  std::vector<std::string> further = {});
  Answer ask(const Question& question, const std::vector<std::string>& environment = {}) const;

 private:
  std::string program_;
  double timeout_;
  std::vector<std::string> further_;
};

}  // namespace plumb::bisect
