// SPDX-License-Identifier: Apache-2.0
//
// Loading and checking a plug-in's table, and the launchers that stand before the plug-in's own.
// A launcher gets the parameters only, so there is one function for each op of plumb.
#include "device/plugin/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>

#include "device/device.h"
#include "device/plugin/float_environment.h"
#include "device/plugin/known_ops.h"
#include "device/plugin/services.h"

namespace plumb::device {

namespace {

using Launcher = plumb_status (*)(const void* params);

// Of the loaded plug-in; null: it lacks the op.
std::string active_name;
std::array<Launcher, kOpCount> active_launchers{};
bool is_active = false;

// A plug-in may only use its parameters until its launcher returns. They are handed to it as copies
// that afterwards hold large sizes and addresses that cannot exist, and stay mapped: whoever reads
// them later gets the same nonsense every time.
class LentParameters {
 public:
  LentParameters(const void* params, std::size_t bytes) : copy_(take()) {
    std::memcpy(copy_->data(), params, bytes);
  }
  ~LentParameters() {
    constexpr int kGone = 0x7b;
    std::memset(copy_->data(), kGone, copy_->size());
    const std::lock_guard lock(mutex());
    free_copies().push_back(std::move(copy_));
  }
  LentParameters(const LentParameters&) = delete;
  LentParameters& operator=(const LentParameters&) = delete;
  const void* get() const { return copy_->data(); }

 private:
  struct alignas(std::max_align_t) Bytes : std::array<std::byte, kMostParamBytes> {};
  using Copy = std::unique_ptr<Bytes>;

  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<Copy>& free_copies() {
    static std::vector<Copy> all;
    return all;
  }
  static Copy take() {
    const std::lock_guard lock(mutex());
    if (free_copies().empty()) return std::make_unique<Bytes>();
    Copy copy = std::move(free_copies().back());
    free_copies().pop_back();
    return copy;
  }

  Copy copy_;
};

bool is_status(plumb_status status) {
  return status == PLUMB_OK || status == PLUMB_INVALID_ARGUMENT || status == PLUMB_UNSUPPORTED ||
         status == PLUMB_LAUNCH_FAILED;
}

plumb_status call_plugin(std::size_t op, const void* params) {
  const auto fail = [&](const std::string& what) {
    throw DeviceError(ErrorKind::other, fmt::format("{}: {} {}", active_name, kOps[op].name, what));
  };
  const LentParameters lent(params, kOps[op].param_bytes);
  begin_plugin_call();
  plumb_status status = PLUMB_OK;
  try {
    const KeptFloatEnvironment kept(fmt::format("{}: {}", active_name, kOps[op].name));
    status = active_launchers[op](lent.get());
  } catch (const std::exception& error) {
    fail(fmt::format("threw through its C interface: {}", error.what()));
  } catch (...) {
    fail("threw through its C interface");
  }
  rethrow_service_error();
  if (!is_status(status)) {
    fail(fmt::format("returned {}, which is no plumb_status", static_cast<int>(status)));
  }
  return status;
}

template <std::size_t kOp>
plumb_status launcher(const void* params) {
  return call_plugin(kOp, params);
}

template <std::size_t... kOp>
constexpr std::array<Launcher, kOpCount> make_launchers(std::index_sequence<kOp...>) {
  return {&launcher<kOp>...};
}
constexpr std::array<Launcher, kOpCount> kLaunchers =
    make_launchers(std::make_index_sequence<kOpCount>());

bool is_format(plumb_format format) { return format >= PLUMB_F64 && format <= PLUMB_E4M3FNUZ; }

// What is wrong with a declaration; "": nothing.
std::string why_bad(const plumb_numerics& n) {
  if (!is_format(n.product) || !is_format(n.accumulator) || !is_format(n.probability)) {
    return "a format that is none";
  }
  if (n.chains < 1) return fmt::format("{} chains: there is at least 1", n.chains);
  if (!(n.function_ulp >= 0) || std::isinf(n.function_ulp))
    return "a function_ulp that is no error";
  if (n.index_order < PLUMB_INDICES_ANY_ORDER || n.index_order > PLUMB_INDICES_BY_KEY) {
    return "an index_order that is none";
  }
  if (n.equal_keys < PLUMB_EQUAL_KEYS_ANY || n.equal_keys > PLUMB_EQUAL_KEYS_LOWEST_INDEX) {
    return "an equal_keys that is none";
  }
  return "";
}

// Fails with one line about the file. Reading the table stops at the first thing that is wrong.
class TableReader {
 public:
  explicit TableReader(const std::string& path) : path_(path) {}

  const plumb_plugin_table& read() const {
    const auto entry_point = reinterpret_cast<const plumb_plugin_table* (*)(const plumb_host*)>(
        dlsym(open(), "plumb_plugin"));
    if (entry_point == nullptr) fail("is no plug-in: it exports no plumb_plugin");
    const plumb_plugin_table* table = call(entry_point);
    if (table == nullptr) fail("plumb_plugin returned no table");
    if (table->abi_version != PLUMB_ABI_VERSION) {
      fail(fmt::format("is made for version {} of the interface, this plumb has {}",
                       table->abi_version, PLUMB_ABI_VERSION));
    }
    if (table->name == nullptr || *table->name == '\0') fail("its table has no name");
    if (table->entry_count < 1 || table->entries == nullptr) fail("its table has no entries");
    return *table;
  }

  // Position of the entry's op in kOps.
  std::size_t check(const plumb_op_entry& entry, int position) const {
    if (entry.op == nullptr) fail(fmt::format("entry {} has no op", position));
    const auto found = std::ranges::find(kOps, std::string_view(entry.op), &KnownOp::name);
    if (found == std::end(kOps)) {
      fail(fmt::format("entry {} is of the unknown op \"{}\"; plumb list --ops shows them",
                       position, entry.op));
    }
    if (entry.launch == nullptr) fail(fmt::format("{} has no launcher", entry.op));
    if (const std::string why = why_bad(entry.numerics); !why.empty()) {
      fail(fmt::format("{} declares {}", entry.op, why));
    }
    return static_cast<std::size_t>(found - std::begin(kOps));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw PluginError(fmt::format("{}: {}", path_, what));
  }

 private:
  void* open() const {
    if (!std::ifstream(path_)) fail(std::strerror(errno));
    // A name without a slash would be looked for elsewhere.
    const std::string file = path_.find('/') == std::string::npos ? "./" + path_ : path_;
    const KeptFloatEnvironment kept("the library's constructors");  // -ffast-math links one
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::string why = dlerror();
      if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
      fail("cannot be loaded: " + why);
    }
    return library;
  }

  const plumb_plugin_table* call(
      const plumb_plugin_table* (*entry_point)(const plumb_host*)) const {
    const KeptFloatEnvironment kept("plumb_plugin");
    try {
      return entry_point(&plugin_services());
    } catch (const std::exception& error) {
      fail(fmt::format("plumb_plugin threw: {}", error.what()));
    } catch (...) {
      fail("plumb_plugin threw");
    }
  }

  const std::string& path_;
};

}  // namespace

Plugin::Plugin(const std::string& path) : path_(path) {
  const TableReader reader(path_);
  if (is_active) reader.fail("another plug-in is loaded");
  const plumb_plugin_table& table = reader.read();
  std::array<Launcher, kOpCount> launchers{};
  for (int i = 0; i < table.entry_count; ++i) {
    const plumb_op_entry& entry = table.entries[i];
    const std::size_t op = reader.check(entry, i);
    if (launchers[op]) reader.fail(fmt::format("two entries for {}", entry.op));
    launchers[op] = entry.launch;
    entries_.push_back({kOps[op].name.data(), kLaunchers[op], entry.numerics});
  }
  name_ = table.name;
  version_ = table.version ? table.version : "";
  table_ = {PLUMB_ABI_VERSION, name_.c_str(), entries_.data(),
            static_cast<std::int32_t>(entries_.size())};
  active_name = name_;
  active_launchers = launchers;
  is_active = true;
}

Plugin::~Plugin() { is_active = false; }

}  // namespace plumb::device
