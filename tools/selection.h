// SPDX-License-Identifier: Apache-2.0
//
// Selection of cases and platforms by a command line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/schedule/any_case.h"

namespace plumb::tools {

// The command line names something that does not exist or makes no sense: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A case or op that this build does not have. Under --bisect it means "cannot say".
class NotInThisBuild : public UsageError {
 public:
  using UsageError::UsageError;
};

struct Selection {
  std::vector<std::string> patterns;    // --case
  std::vector<std::string> ops;         // --op
  std::vector<std::string> platforms;   // --platform; empty = every simulated one
  std::vector<std::string> settings;    // --set name=value, applied to every selected row
  std::vector<std::string> case_files;  // --cases FILE
  std::string tier;                     // "", "smoke", "default", "full"
  std::vector<std::string> own_ops;     // --ops FILE: ops that Python files declare
  std::string plugin;                   // --plugin FILE; "": plumb's own kernels
  std::string point;                    // --point WORDS; "": those of the tier
  std::vector<std::string> kernels;     // --expect-kernel PATTERN
};

struct Selected {
  std::vector<cases::Case> cases;
  std::vector<std::string> platforms;
  cases::Tier tier = cases::Tier::standard;
};

// Selects cases of ops. Throws UsageError or cases::BadRow with one line that says what is wrong.
Selected select(const Selection& selection);

struct SelectedAny {
  std::vector<cases::AnyCase> cases;
  std::vector<std::string> platforms;
  cases::Tier tier = cases::Tier::standard;
};

// As select, with decode steps if `kinds` includes them.
enum class CaseKinds { ops, ops_and_decode_steps };
SelectedAny select_any(const Selection& selection, CaseKinds kinds);

// Throws UsageError for an unknown platform. "all" stands for every platform.
std::vector<std::string> choose_platforms(const std::vector<std::string>& asked);

// Whether the platform is a real device of this machine.
bool is_real(const std::string& platform);

// Throws UsageError unless the text is an unsigned 64-bit number.
std::uint64_t parse_seed(const std::string& text);

// Options, besides --case and --platform, that repeat a run, quoted for a shell: " --tier smoke
// --set tokens=3".
std::string repeated_options(const Selection& selection, std::uint64_t seed);

// Throws UsageError if the file cannot be read, or if it is larger than 16 MiB or `most` bytes.
std::string read_file(const std::string& path);
std::string read_file(const std::string& path, std::size_t most);

}  // namespace plumb::tools
