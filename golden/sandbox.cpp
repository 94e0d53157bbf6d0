// SPDX-License-Identifier: Apache-2.0
#include "golden/sandbox.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <system_error>

#include "device/sim/sanitizers.h"
#include "golden/hdf5_file.h"
#include "process/child.h"
#include "process/codec.h"

namespace plumb::golden {

namespace {

constexpr rlim_t kMemory = rlim_t{1} << 30, kSeconds = 20;
constexpr std::size_t kLongestAnswer = std::size_t{256} << 20;

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

void set_limits() {
  // Not with a sanitizer, which reserves more address space than this limit.
  if (!device::sim::sanitizers::kActive) limit(RLIMIT_AS, kMemory);
  limit(RLIMIT_CPU, kSeconds);
  limit(RLIMIT_FSIZE, 0);  // forbids files; pipes are not affected
  limit(RLIMIT_CORE, 0);
}

// Runs in the child process. The first byte of the answer says what follows.
int answer(std::span<const std::byte> bytes, const std::string& name) {
  set_limits();
  std::vector<std::uint8_t> text;
  try {
    text = process::encode(decode(bytes, name));
    text.insert(text.begin(), 'f');
  } catch (const std::exception& error) {
    const std::string what =
        dynamic_cast<const GoldenError*>(&error) ? error.what() : name + ": needs too much memory";
    text.assign(what.begin(), what.end());
    text.insert(text.begin(), 'e');
  }
  process::Channel parent(process::Child::kChannel);
  parent.send(text, process::Deadline::never());
  return 0;
}

std::string reason_of(const process::Ending& ending) {
  if (ending.signal == SIGXCPU) return "takes too long to read";
  if (ending.signal != 0) return fmt::format("reading it ends with signal {}", ending.signal);
  return "reading it gives no answer";
}

}  // namespace

GoldenFile decode_untrusted(std::span<const std::byte> bytes, const std::string& name) {
  // A limit on elapsed time in addition to the limit on CPU time, because a process may wait.
  const auto deadline = process::Deadline::in(10 * kSeconds);
  process::Command command;
  command.channel = true;
  std::vector<std::uint8_t> text;
  try {
    process::Child child([&] { return answer(bytes, name); }, command);
    const process::Got got = child.channel().receive(text, deadline);
    if (!child.wait(deadline)) throw GoldenError(name + ": takes too long to read");
    if (got != process::Got::message || text.empty() || text.size() > kLongestAnswer ||
        !child.ending().ok()) {
      throw GoldenError(name + ": " + reason_of(child.ending()));
    }
  } catch (const std::system_error& error) {
    throw GoldenError(fmt::format("{}: no process to read it in: {}", name, error.what()));
  }
  const std::vector<std::uint8_t> rest(text.begin() + 1, text.end());
  if (text[0] == 'e') throw GoldenError(std::string(rest.begin(), rest.end()));
  try {
    GoldenFile file = process::decode<GoldenFile>(rest);
    validate(file);
    return file;
  } catch (const std::exception& error) {
    throw GoldenError(name + ": " + error.what());
  }
}

}  // namespace plumb::golden
