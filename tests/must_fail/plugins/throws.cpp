// SPDX-License-Identifier: Apache-2.0
//
// Exceptions that leave a plug-in through its C interface. PLUMB_FAULT chooses where.
#include <stdexcept>

#include "device/plumb_plugin.h"

namespace {

enum { IN_ENTRY_POINT, IN_LAUNCHER, IN_KERNEL, NO_EXCEPTION };
constexpr int kFault = PLUMB_FAULT;

const plumb_host* host;

void kernel(const void*) { throw std::runtime_error("thrown by a kernel"); }

plumb_status launch(const void* params) {
  const auto& p = *static_cast<const plumb_rms_norm_params*>(params);
  if (kFault == IN_LAUNCHER) throw std::runtime_error("thrown by a launcher");
  if (kFault == NO_EXCEPTION) throw 42;
  return host->launch(host->context, "throwing_kernel", &kernel, nullptr, 0, p.stream);
}

}  // namespace

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  if (kFault == IN_ENTRY_POINT) throw std::runtime_error("thrown by the entry point");
  static const plumb_op_entry entry = {
      "rms_norm",
      &launch,
      {PLUMB_F32, PLUMB_F32, 1, PLUMB_F32, 2, 1, 0, PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_ANY}};
  static const plumb_plugin_table table = {PLUMB_ABI_VERSION, "throws", "", &entry, 1};
  host = services;
  return &table;
}
