// SPDX-License-Identifier: Apache-2.0
#include "python/run_here.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "cases/drivers/run.h"
#include "cases/studies/right_under.h"
#include "cases/tables/case_file.h"
#include "cases/tables/registry.h"
#include "python/kernels.h"

namespace nb = nanobind;

namespace plumb::python {

namespace {

cases::Tier tier_of(const std::string& name) {
  const std::map<std::string, cases::Tier> tiers{{"smoke", cases::Tier::smoke},
                                                 {"default", cases::Tier::standard},
                                                 {"full", cases::Tier::full}};
  const auto found = tiers.find(name);
  if (found != tiers.end()) return found->second;
  throw cases::BadRow(fmt::format("the tier is smoke, default or full, not \"{}\"", name));
}

void check_platforms(const std::vector<std::string>& platforms) {
  const std::vector<std::string> known = device::known_platforms();
  for (const std::string& name : platforms) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string nearest = cases::nearest_name(name, known);
    throw cases::BadRow(
        fmt::format("there is no platform {}{}", name,
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
  }
}

nb::dict to_python(const cases::CaseResult& result) {
  nb::list failures;
  for (const cases::Failure& failure : result.failures) {
    nb::dict one;
    one["context"] = failure.context;
    one["lines"] = failure.lines;
    failures.append(one);
  }
  nb::dict made;
  made["case"] = result.id;
  made["platform"] = result.platform;
  made["outcome"] = std::string(name_of(result.outcome));
  made["reason"] = result.reason;
  made["failures"] = failures;
  made["right_if"] = cases::right_if(result.right_under);
  made["passes_if"] = cases::passes_if(result.passes_under);
  return made;
}

}  // namespace

nb::list run_here(const std::vector<std::string>& patterns, const std::string& tier,
                  const std::vector<std::string>& platforms) {
  check_platforms(platforms);
  const device::Implementation table{"this process", PythonKernels::all().entries()};
  cases::RunOptions options;
  options.tier = tier_of(tier);
  options.foreign = true;
  options.open = &open_for_python;
  options.implementation = [&table](std::string_view, bool) -> const device::Implementation& {
    return table;
  };
  const auto is_chosen = [&](const cases::Case& one) {
    const std::string id = one.id();
    const auto names_it = [&](const std::string& p) { return cases::matches(p, id); };
    return device::find_entry(table, one.op->name) != nullptr && one.tier(true) <= options.tier &&
           (patterns.empty() || std::ranges::any_of(patterns, names_it));
  };
  nb::list results;
  for (const cases::Case& one : cases::all_cases()) {
    if (!is_chosen(one)) continue;
    for (const std::string& platform : platforms) {
      options.platform = platform;
      cases::CaseResult result;
      {
        const nb::gil_scoped_release unlocked;
        result = cases::run_case(one, options);
        cases::find_declarations(one, options, result);
      }
      results.append(to_python(result));
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  return results;
}

}  // namespace plumb::python
