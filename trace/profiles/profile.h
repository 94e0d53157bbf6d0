// SPDX-License-Identifier: Apache-2.0
//
// Profiles: what the kernels of an engine promise, by its version and platform (docs/traces.md). A
// profile supplies the promises that a recorded call does not state itself.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace plumb::trace {

// Thrown for an invalid profile. The message is one line: file, line, and the allowed values.
class BadProfile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One [[profile]] table of a file. `platform` "cuda" includes cuda-sm90.
struct Profile {
  std::string engine, from, before, platform;  // "": any; versions in [from, before)
  std::map<std::string, Promise, std::less<>> ops;

  // True if the trace's `engine`, `version` and `platform` fit. A trace without a version fits only
  // a profile without version bounds.
  bool is_of(const std::map<std::string, std::string>& provenance) const;
  std::string name() const;  // "vllm from 0.20, cpu"
};

// Throws BadProfile for text that does not follow docs/traces.md, for an unknown op, and for an
// unknown value of an op. `file`: name of the text in messages.
std::vector<Profile> parse_profiles(std::string_view text, const std::string& file);

// plumb's own profiles, then those added with add_profiles.
const std::vector<Profile>& known_profiles();
// Adds the profiles of a file, or of each *.toml in a folder, after plumb's own. Valid for this
// process. Throws BadProfile.
void add_profiles(const std::string& path);

// Sets each call's profile. If several fit, later ones override single values of earlier ones.
void apply_profiles(TraceStep& step);

// Text such as "flag_gems (flag_gems.toml:9): sum = fp32": the first known profile under whose
// promise for the op the call is right; "": none. Calls is_right once for each promise that differs
// from the call's own profile and from those asked before.
std::string right_as(const TraceCall& call, const std::function<bool(const Promise&)>& is_right);

}  // namespace plumb::trace
