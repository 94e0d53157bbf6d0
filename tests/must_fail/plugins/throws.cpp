// SPDX-License-Identifier: Apache-2.0
//
// Exceptions that leave a plug-in through its C interface. PLUMB_FAULT chooses the place.
#include <plumb/plumb_plugin.h>

#include <stdexcept>

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
  static const plumb_numerics numerics = [] {
    plumb_numerics own{};
    own.struct_size = sizeof own;
    own.product = own.accumulator = own.probability = PLUMB_F32;
    own.chains = 1;
    own.function_ulp = 2;
    own.deterministic = 1;
    return own;
  }();
  static const plumb_op_entry entry = [] {
    plumb_op_entry own{};
    own.op = "rms_norm";
    own.launch = &launch;
    own.numerics = &numerics;
    return own;
  }();
  static const plumb_plugin_table table = {.abi_version = PLUMB_ABI_VERSION,
                                           .struct_size = sizeof(plumb_plugin_table),
                                           .name = "throws",
                                           .version = "",
                                           .entries = &entry,
                                           .entry_stride = sizeof(plumb_op_entry),
                                           .entry_count = 1};
  host = services;
  return &table;
}
