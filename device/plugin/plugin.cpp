// SPDX-License-Identifier: Apache-2.0
//
// Loads a plug-in, checks its table, and wraps its launchers. A launcher gets the parameters only,
// so there is one wrapper function for each op of plumb.
#include "device/plugin/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <plumb/plumb_plugin.h>

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
#include "device/filler.h"
#include "device/plugin/float_environment.h"
#include "device/plugin/grown_struct.h"
#include "device/plugin/known_ops.h"
#include "device/plugin/services.h"
#include "device/plugin/told_text.h"

namespace plumb::device {

namespace {

// The loaded plug-in. An entry without a launcher is an op that it does not have.
std::string active_name;
std::array<plumb_op_entry, kOpCount> active_entries{};
bool is_active = false;

// A plug-in may use its parameters only until its launcher returns. So it gets a copy. Afterwards
// the copy holds large sizes and addresses that cannot exist, and stays mapped: a late read gets
// the same wrong values every time.
class LentParameters {
 public:
  LentParameters(const void* params, std::size_t bytes) : copy_(take()) {
    copy_->fill(std::byte{0});  // members that only the plug-in knows
    std::memcpy(copy_->data(), params, bytes);
    const auto size = static_cast<std::int64_t>(bytes);
    std::memcpy(copy_->data(), &size, sizeof size);
  }
  ~LentParameters() {
    std::memset(copy_->data(), kGoneParameter, copy_->size());
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

[[noreturn]] void fail(std::size_t op, const std::string& what) {
  throw DeviceError(ErrorKind::other, fmt::format("{}: {} {}", active_name, kOps[op].name, what));
}

// Calls a function of the plug-in's entry with parameters that are invalid afterwards.
template <class Call>
void call_plugin(std::size_t op, const void* params, const Call& call) {
  const LentParameters lent(params, kOps[op].param_bytes);
  begin_plugin_call();
  try {
    const KeptFloatEnvironment kept(fmt::format("{}: {}", active_name, kOps[op].name));
    call(lent.get());
  } catch (const std::exception& error) {
    fail(op, fmt::format("threw through its C interface: {}", told(error.what())));
  } catch (...) {
    fail(op, "threw through its C interface");
  }
  rethrow_service_error();
}

plumb_status enqueue(std::size_t op, plumb_status (*function)(const void*), const void* params) {
  plumb_status status = PLUMB_OK;
  call_plugin(op, params, [&](const void* lent) { status = function(lent); });
  if (!is_status(status)) {
    fail(op, fmt::format("returned {}, which is not a plumb_status", static_cast<int>(status)));
  }
  return status;
}

bool is_format(plumb_format format) { return format >= PLUMB_F64 && format <= PLUMB_E4M3FNUZ; }

// What is wrong with a declaration; "" if nothing is.
std::string why_bad(const plumb_numerics& n) {
  if (!is_format(n.product) || !is_format(n.accumulator) || !is_format(n.probability) ||
      !is_format(n.score)) {
    return "a format that is none";
  }
  if (n.chains < 1) return fmt::format("{} chains: there is at least 1", n.chains);
  if (!(n.function_ulp >= 0) || std::isinf(n.function_ulp))
    return "a function_ulp that is not an error";
  if (n.index_order < PLUMB_INDICES_ANY_ORDER || n.index_order > PLUMB_INDICES_BY_KEY) {
    return "an index_order that is none";
  }
  if (n.equal_keys < PLUMB_EQUAL_KEYS_ANY || n.equal_keys > PLUMB_EQUAL_KEYS_LOWEST_INDEX) {
    return "an equal_keys that is none";
  }
  if (n.sum_unit < PLUMB_UNIT_FP32 || n.sum_unit > PLUMB_UNIT_24_BITS) {
    return "a sum_unit that is none";
  }
  if (n.sum_step < 0) return fmt::format("a sum_step of {}", n.sum_step);
  return "";
}

void ask_numerics(std::size_t op, const void* params, plumb_numerics* numerics) {
  call_plugin(op, params,
              [&](const void* lent) { active_entries[op].numerics_of(lent, numerics); });
  if (const std::string why = why_bad(*numerics); !why.empty()) {
    fail(op, fmt::format("declares {} for this call", why));
  }
}

void* create_state(std::size_t op, const void* params) {
  void* state = nullptr;
  call_plugin(op, params, [&](const void* lent) { state = active_entries[op].state_create(lent); });
  return state;
}

template <std::size_t kOp>
OpEntry entry_of(const plumb_numerics& numerics) {
  const plumb_op_entry& own = active_entries[kOp];
  OpEntry made{
      .op = kOps[kOp].name,
      .launch = [](const void* params) { return enqueue(kOp, active_entries[kOp].launch, params); },
      .numerics = numerics,
      .contract = told(own.contract),
      .state_destroy = own.state_destroy};
  if (own.numerics_of != nullptr) {
    made.numerics_of = [](const void* params, plumb_numerics* declared) {
      ask_numerics(kOp, params, declared);
    };
  }
  if (own.state_create != nullptr) {
    made.state_create = [](const void* params) { return create_state(kOp, params); };
  }
  if (own.plan != nullptr) {
    made.plan = [](const void* params) { return enqueue(kOp, active_entries[kOp].plan, params); };
  }
  return made;
}

// One function for each position in kOps.
using EntryMaker = OpEntry (*)(const plumb_numerics& numerics);
template <std::size_t... kOp>
constexpr std::array<EntryMaker, kOpCount> make_entries(std::index_sequence<kOp...>) {
  return {&entry_of<kOp>...};
}
constexpr std::array<EntryMaker, kOpCount> kEntryMakers =
    make_entries(std::make_index_sequence<kOpCount>());

// Sizes that the structures had in the first version of the interface that stores sizes.
constexpr std::size_t kLeastTable = offsetof(plumb_plugin_table, entry_count) + 8;
constexpr std::size_t kLeastEntry = offsetof(plumb_op_entry, numerics) + sizeof(void*);
constexpr std::size_t kLeastNumerics =
    offsetof(plumb_numerics, equal_keys) + sizeof(plumb_equal_keys);

// Reads a plug-in's table. The first error ends it with a PluginError of one line about the file.
class TableReader {
 public:
  explicit TableReader(const std::string& path) : path_(path) {}

  plumb_plugin_table read() const {
    const auto entry_point = reinterpret_cast<const plumb_plugin_table* (*)(const plumb_host*)>(
        dlsym(open(), "plumb_plugin"));
    if (entry_point == nullptr) fail("is not a plug-in: it exports no plumb_plugin");
    const plumb_plugin_table* table = call(entry_point);
    if (table == nullptr) fail("plumb_plugin returned no table");
    if (table->abi_version != PLUMB_ABI_VERSION) {
      fail(fmt::format("is made for version {} of the interface, this plumb has {}",
                       table->abi_version, PLUMB_ABI_VERSION));
    }
    const auto known =
        known_part<plumb_plugin_table>("its table has", table, table->struct_size, kLeastTable);
    if (known.name == nullptr || *known.name == '\0') fail("its table has no name");
    if (known.entry_count < 1 || known.entries == nullptr) fail("its table has no entries");
    return known;
  }

  plumb_op_entry entry(const plumb_plugin_table& table, std::int64_t position) const {
    const auto* const first = reinterpret_cast<const std::byte*>(table.entries);
    return known_part<plumb_op_entry>(fmt::format("entry {} has", position),
                                      first + position * table.entry_stride, table.entry_stride,
                                      kLeastEntry);
  }

  plumb_numerics numerics(const plumb_op_entry& entry) const {
    if (entry.numerics == nullptr) fail(fmt::format("{} declares no numerics", entry.op));
    const auto known =
        known_part<plumb_numerics>(fmt::format("the numerics of {} have", entry.op), entry.numerics,
                                   entry.numerics->struct_size, kLeastNumerics);
    if (const std::string why = why_bad(known); !why.empty()) {
      fail(fmt::format("{} declares {}", entry.op, why));
    }
    return known;
  }

  // Position in kOps of the entry's op.
  std::size_t check(const plumb_op_entry& entry, std::int64_t position) const {
    if (entry.op == nullptr) fail(fmt::format("entry {} has no op", position));
    const auto found = std::ranges::find(kOps, std::string_view(entry.op), &KnownOp::name);
    if (found == std::end(kOps)) {
      fail(fmt::format("entry {} is of the unknown op \"{}\"; plumb list --ops shows them",
                       position, entry.op));
    }
    if (entry.launch == nullptr) fail(fmt::format("{} has no launcher", entry.op));
    check_state(entry, *found);
    return static_cast<std::size_t>(found - std::begin(kOps));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw PluginError(fmt::format("{}: {}", path_, told(what.c_str())));
  }

 private:
  void check_state(const plumb_op_entry& entry, const KnownOp& op) const {
    const bool creates = entry.state_create != nullptr;
    if (creates != (entry.state_destroy != nullptr)) {
      fail(fmt::format("{} has only one of state_create and state_destroy", entry.op));
    }
    if ((creates || entry.plan != nullptr) && !op.has_state) {
      fail(fmt::format("{} keeps a state or a plan, which this op does not have", entry.op));
    }
  }

  template <class T>
  T known_part(const std::string& of, const void* from, std::int64_t bytes,
               std::size_t least) const {
    const std::string why = why_unreadable(from, bytes, sizeof(T), least);
    if (!why.empty()) fail(fmt::format("{} {}", of, why));
    return read_struct<T>(from, bytes);
  }

  void* open() const {
    if (!std::ifstream(path_)) fail(std::strerror(errno));
    // Without a slash, dlopen would search the library path.
    const std::string file = path_.find('/') == std::string::npos ? "./" + path_ : path_;
    const KeptFloatEnvironment kept("the library's constructors");  // -ffast-math adds one
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
  const plumb_plugin_table table = reader.read();
  active_entries = {};
  for (std::int64_t i = 0; i < table.entry_count; ++i) {
    const plumb_op_entry entry = reader.entry(table, i);
    const std::size_t op = reader.check(entry, i);
    if (active_entries[op].launch) reader.fail(fmt::format("two entries for {}", entry.op));
    active_entries[op] = entry;
    table_.entries.push_back(kEntryMakers[op](reader.numerics(entry)));
  }
  table_.name = active_name = told(table.name);
  version_ = told(table.version);
  is_active = true;
}

Plugin::~Plugin() { is_active = false; }

}  // namespace plumb::device
