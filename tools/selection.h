// SPDX-License-Identifier: Apache-2.0
//
// Which cases a command line names, on which platforms.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "decode/schedule/any_case.h"

namespace plumb::tools {

// The command line asks for something that is not there or makes no sense: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A case or op that this build does not have. Under --bisect that says nothing about a commit.
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

// Cases of ops. Throws UsageError or cases::BadRow with one line that says what is wrong.
Selected select(const Selection& selection);

struct SelectedAny {
  std::vector<cases::AnyCase> cases;
  std::vector<std::string> platforms;
  cases::Tier tier = cases::Tier::standard;
};

// As select, with decode steps if they are asked for.
enum class CaseKinds { ops, ops_and_decode_steps };
SelectedAny select_any(const Selection& selection, CaseKinds kinds);

// Throws UsageError for a platform that plumb does not know. `all` stands for every one.
std::vector<std::string> choose_platforms(const std::vector<std::string>& asked);

// Does this machine have it, and is it no simulated one?
bool is_real(const std::string& platform);

// Throws UsageError for what is no whole number of 64 bits.
std::uint64_t parse_seed(const std::string& text);

// The options that, beside --case and --platform, repeat a run, as a shell reads them:
// " --tier smoke --set tokens=3".
std::string repeated_options(const Selection& selection, std::uint64_t seed);

// Throws UsageError. Of 16 MiB at most, or of so many bytes.
std::string read_file(const std::string& path);
std::string read_file(const std::string& path, std::size_t most);

}  // namespace plumb::tools
