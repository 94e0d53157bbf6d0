// SPDX-License-Identifier: Apache-2.0
//
// Source lines as messages show them, the barriers that a run skips, and those that it executed.
#pragma once

#include <string>
#include <vector>

#include "device/sim/context.h"

namespace plumb::device::sim {

std::string name_of_site(const Site& site);  // "mhc_pre.cu:120"
bool same_file(const char* a, const char* b);
inline bool same_line(const Site& a, const Site& b) {
  // Nearly always the lanes of a wave come from one call, whose location is a single constant.
  if (__builtin_memcmp(&a, &b, sizeof a) == 0) return true;
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || same_file(a.file_name(), b.file_name()));
}

// The barriers of one kernel launch.
class BarrierSites {
 public:
  void start_kernel(const std::string& kernel, const std::vector<std::string>& disabled);
  bool is_disabled(const Site& site) const { return any_disabled_ && find_disabled(site); }
  void note_executed(const Site& site) {
    for (const Site& known : seen_)
      if (known.line() == site.line() && known.file_name() == site.file_name()) return;
    add(site);
  }

 private:
  bool find_disabled(const Site& site) const;
  void add(const Site& site);

  std::string kernel_;
  std::vector<std::string> disabled_;
  bool any_disabled_ = false;
  std::vector<Site> seen_;
};

}  // namespace plumb::device::sim
