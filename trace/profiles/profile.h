// SPDX-License-Identifier: Apache-2.0
//
// Profiles: what the kernels of an engine promise, by its version and platform (docs/traces.md). A
// recorded call is judged by them where it does not say itself what its kernel promises.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace plumb::trace {

// One line: the file, the line, and what it could have been.
class BadProfile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One table of a file. Of `platform` "cuda" is cuda-sm90 too.
struct Profile {
  std::string engine, from, before, platform;  // "": any; versions in [from, before)
  std::map<std::string, Promise, std::less<>> ops;

  // By `engine`, `version` and `platform` of a trace. Without a version, one that has no bounds.
  bool is_of(const std::map<std::string, std::string>& provenance) const;
  std::string name() const;  // "vllm from 0.20, cpu"
};

// Throws BadProfile for text that is anything else than docs/traces.md says, for an op that plumb
// has not, and for a value that the op has not. `file` is what messages call the text.
std::vector<Profile> parse_profiles(std::string_view text, const std::string& file);

// Those that plumb has, and behind them those of add_profiles.
const std::vector<Profile>& known_profiles();
// The profiles of a file, or of each *.toml of a folder, in front of which plumb's own stand. For
// this process. Throws BadProfile.
void add_profiles(const std::string& path);

// Sets each call's profile. Of several that fit, a later one replaces single values.
void apply_profiles(TraceStep& step);

// "flag_gems's kernels (flag_gems.toml:9): sum = fp32": the first profile of another engine or
// version under which a call is right; "": none. Asks for each promise once.
std::string right_as(const TraceCall& call, const std::function<bool(const Promise&)>& is_right);

}  // namespace plumb::trace
