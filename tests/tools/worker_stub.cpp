// SPDX-License-Identifier: Apache-2.0
//
// A worker process that gets requests to watch decode steps, and answers or crashes as a test asks.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tools/result_codec.h"

namespace {

using plumb::process::WorkerRequest;

// Whether task 1 crashes: always, only with a diagnosis, or only while `file` does not exist.
bool crashes(const std::string& mode, const char* file, bool diagnosed) {
  if (mode == "watch") return true;
  if (mode == "diagnosis") return diagnosed;
  const bool again = std::ifstream(file).good();
  std::ofstream(file) << "crashed once";
  return !again;
}

}  // namespace

int main(int count, char** arguments) {
  if (!plumb::process::is_worker() || count < 2) return 9;
  const std::string mode = arguments[1];
  const char* file = count > 2 ? arguments[2] : "";
  return plumb::process::serve([&](const WorkerRequest& request) {
    const auto watch = plumb::process::decode<plumb::tools::WatchRequest>(request.body);
    if (request.task == 1 && crashes(mode, file, watch.diagnosed)) std::raise(SIGSEGV);
    plumb::cases::DiagnosedWatch answer;
    answer.result.steps = static_cast<std::int64_t>(request.task);
    if (mode != "once") {
      answer.result.findings.push_back(
          {plumb::cases::Detector::path, 1, 4, "sparse_mla_decode", "", ""});
    }
    return plumb::process::encode(answer);
  });
}
