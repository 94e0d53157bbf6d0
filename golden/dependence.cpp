// SPDX-License-Identifier: Apache-2.0
#include "golden/dependence.h"

#include <functional>

#include "device/sim/sim_device.h"
#include "golden/provenance.h"

namespace plumb::golden {

namespace {

using device::Properties;

struct Trait {
  const char* name;
  void (*change)(Properties&);
};

constexpr Trait kTraits[] = {
    {"wave order", [](Properties& p) { p.wave_size = p.wave_size == 32 ? 64 : 32; }},
    {"FP8 dialect",
     [](Properties& p) {
       p.fp8 = p.fp8 == device::Fp8Dialect::e4m3fn ? device::Fp8Dialect::e4m3fnuz
                                                   : device::Fp8Dialect::e4m3fn;
     }},
    {"split plan", [](Properties& p) { p.multiprocessors = p.multiprocessors == 132 ? 304 : 132; }},
};

// A shape that the changed platform cannot run counts as dependent too.
bool depends_on(const Trait& trait, const cases::Case& which, const cases::RunOptions& options,
                const GoldenCapture& capture) {
  cases::RunOptions changed = options;
  changed.open = [&](std::string_view name, const device::Conditions& conditions) {
    Properties properties = options.open(name, {})->properties();
    trait.change(properties);
    return std::make_unique<device::sim::SimDevice>(properties, conditions);
  };
  try {
    return results_digest(GoldenCapture(which, changed).golden()) !=
           results_digest(capture.golden());
  } catch (const cases::Unsupported&) {
    return true;
  }
}

std::string attribute(const CaseGolden& golden, std::string_view name) {
  const auto found = golden.provenance.find(std::string(name));
  return found == golden.provenance.end() ? "" : found->second;
}

// Takes the word for a trait from a text such as "simulator, 132 multiprocessors, waves of 32,
// e4m3fn".
std::string part_of_device(const CaseGolden& golden, std::string_view trait) {
  const std::string device = attribute(golden, "device");
  const auto word_after = [&](std::string_view before) {
    const std::size_t at = device.find(before);
    return at == std::string::npos ? "" : device.substr(at, device.find(',', at + 2) - at);
  };
  if (trait == "wave order") return word_after("waves of ");
  if (trait == "FP8 dialect") return word_after(", e4m3");
  return word_after(", ");
}

}  // namespace

std::string dependence_of(const cases::Case& which, const cases::RunOptions& options,
                          const GoldenCapture& capture) {
  std::string text;
  for (const Trait& trait : kTraits) {
    if (!depends_on(trait, which, options, capture)) continue;
    text += (text.empty() ? "" : ", ") + std::string(trait.name);
  }
  return text.empty() ? "nothing" : text;
}

std::string causes_of(const CaseGolden& a, const CaseGolden& b) {
  const std::string either = attribute(a, kDependsOn) + "; " + attribute(b, kDependsOn);
  std::string text;
  for (const Trait& trait : kTraits) {
    if (either.find(trait.name) == std::string::npos) continue;
    if (part_of_device(a, trait.name) == part_of_device(b, trait.name)) continue;
    text += (text.empty() ? "" : ", ") + std::string(trait.name);
  }
  return text;
}

}  // namespace plumb::golden
