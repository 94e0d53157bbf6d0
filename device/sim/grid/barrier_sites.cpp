// SPDX-License-Identifier: Apache-2.0
//
// The list of executed barriers is one per process. Everything else here belongs to one launch.
#include "device/sim/grid/barrier_sites.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include "device/sim/launch.h"

namespace plumb::device::sim {

namespace {

struct Registry {
  std::mutex mutex;
  std::set<std::string> names;
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

std::string_view basename(const char* path) {
  const std::string_view whole(path);
  return whole.substr(whole.find_last_of('/') + 1);
}

}  // namespace

std::string name_of_site(const Site& site) {
  return fmt::format("{}:{}", basename(site.file_name()), site.line());
}

bool same_file(const char* a, const char* b) { return std::strcmp(a, b) == 0; }

void BarrierSites::start_kernel(const std::string& kernel,
                                const std::vector<std::string>& disabled) {
  kernel_ = kernel;
  disabled_.clear();
  seen_.clear();
  for (const std::string& entry : disabled) {
    const std::size_t space = entry.find(' ');
    if (space == std::string::npos || entry.substr(space + 1) == kernel)
      disabled_.push_back(entry.substr(0, space));
  }
  any_disabled_ = !disabled_.empty();
}

bool BarrierSites::find_disabled(const Site& site) const {
  const std::string name = name_of_site(site);
  for (const std::string& entry : disabled_)
    if (entry == name) return true;
  return false;
}

void BarrierSites::add(const Site& site) {
  seen_.push_back(site);
  const std::lock_guard lock(registry().mutex);
  registry().names.insert(name_of_site(site) + " " + kernel_);
}

std::vector<std::string> executed_barriers() {
  const std::lock_guard lock(registry().mutex);
  return {registry().names.begin(), registry().names.end()};
}

void reset_executed_barriers() {
  const std::lock_guard lock(registry().mutex);
  registry().names.clear();
}

}  // namespace plumb::device::sim
