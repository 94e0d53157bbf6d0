// SPDX-License-Identifier: Apache-2.0
//
// The simulator's back end of device/simt.h. All code that is compiled into a kernel is in the
// namespace of its kernel set (plain, checked, one per mutant). So the linker never merges an
// instrumented function into code without instrumentation.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "device/sim/context.h"
#include "device/sim/launch.h"
#include "device/sim/math.h"
#include "device/simt_vector.h"

#ifndef PLUMB_KERNEL_SET
#define PLUMB_KERNEL_SET kernels
#endif

// For functions that read the simulator's own memory, or call the checker themselves: an
// instrumented build does not instrument them.
#ifdef PLUMB_CHECKED_BUILD
#define PLUMB_SIM_UNINSTRUMENTED __attribute__((noinline, no_sanitize("thread"))) inline
#else
#define PLUMB_SIM_UNINSTRUMENTED inline
#endif
#define PLUMB_KERNEL
#define PLUMB_BOUNDS(threads, blocks)
// Internal linkage: two kernels may have helpers of the same name, and the linker must not pick
// one.
#define PLUMB_DEVICE __attribute__((unused)) static
#define PLUMB_METHOD
#define PLUMB_UNROLL
#define PLUMB_NO_UNROLL
#define PLUMB_SHARED(type, name, count)                                  \
  static constexpr ::plumb::device::sim::SharedSite plumb_shared_##name{ \
      #name, sizeof(type) * (count), alignof(type)};                     \
  type* const name = static_cast<type*>(::plumb::device::sim::static_shared(plumb_shared_##name))
#define PLUMB_LAUNCH(kernel, shape, stream, ...)                                                 \
  (::plumb::device::sim::enqueue((stream), ::plumb::device::PLUMB_KERNEL_SET::make_call<kernel>( \
                                               #kernel, (shape)__VA_OPT__(, ) __VA_ARGS__)),     \
   PLUMB_OK)

namespace plumb::device::PLUMB_KERNEL_SET {

using LaneMask = std::uint64_t;
using sim::LaunchShape;
using sim::stream_properties;
using Here = std::source_location;

PLUMB_SIM_UNINSTRUMENTED int thread_index() { return sim::current->thread; }
PLUMB_SIM_UNINSTRUMENTED int lane_index() { return sim::current->lane; }
PLUMB_SIM_UNINSTRUMENTED int wave_index() { return sim::current->wave; }
PLUMB_SIM_UNINSTRUMENTED int wave_size() { return sim::current->block->wave_size; }
PLUMB_SIM_UNINSTRUMENTED int block_size() { return sim::current->block->block_size; }
PLUMB_SIM_UNINSTRUMENTED int block_index_x() {
  return static_cast<int>(sim::current->block->block_x);
}
PLUMB_SIM_UNINSTRUMENTED int block_index_y() {
  return static_cast<int>(sim::current->block->block_y);
}
PLUMB_SIM_UNINSTRUMENTED int grid_size_x() { return static_cast<int>(sim::current->block->grid_x); }
PLUMB_SIM_UNINSTRUMENTED int grid_size_y() { return static_cast<int>(sim::current->block->grid_y); }

// The lanes that this wave has: fewer than wave_size() in a last, partial wave.
inline LaneMask all_lanes() { return sim::all_lanes(); }

inline LaneMask whole_wave() { return ~LaneMask{0} >> (64 - wave_size()); }

inline void block_sync(Here here = Here::current()) { sim::block_sync(here); }

inline void wave_sync(LaneMask mask, Here here = Here::current()) {
  sim::wave_operation(sim::WaveKind::sync, mask, 0, 0, here);
}

inline LaneMask ballot(LaneMask mask, bool predicate, Here here = Here::current()) {
  return sim::wave_operation(sim::WaveKind::ballot, mask, predicate ? 1 : 0, 0, here);
}

inline void check_width(int width, const Here& here) {
  if (width < 1 || width > wave_size() || (width & (width - 1)) != 0)
    sim::refuse_width(width, here);
}

template <typename T>
concept Shufflable = std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <Shufflable T>
inline T exchange(sim::WaveKind kind, LaneMask mask, T value, int source, const Here& here) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<T>(
      static_cast<Bits>(sim::wave_operation(kind, mask, std::bit_cast<Bits>(value), source, here)));
}

// A lane that is not in `mask`, or that the wave does not have, yields poison: undefined on
// hardware.
template <Shufflable T>
inline T shuffle(LaneMask mask, T value, int lane, int width = wave_size(),
                 Here here = Here::current()) {
  check_width(width, here);
  const int source = (lane_index() & ~(width - 1)) + (lane & (width - 1));
  return exchange(sim::WaveKind::shuffle, mask, value, source, here);
}

// A source outside the group of `width` lanes yields the lane's own value.
template <Shufflable T>
inline T shuffle_down(LaneMask mask, T value, int delta, int width = wave_size(),
                      Here here = Here::current()) {
  check_width(width, here);
  const int self = lane_index();
  const int source = (self & (width - 1)) + delta < width ? self + delta : self;
  return exchange(sim::WaveKind::shuffle_down, mask, value, source, here);
}

template <Shufflable T>
inline T shuffle_xor(LaneMask mask, T value, int lane_mask, int width = wave_size(),
                     Here here = Here::current()) {
  check_width(width, here);
  const int self = lane_index();
  const int source = (self ^ lane_mask) < (self & ~(width - 1)) + width ? self ^ lane_mask : self;
  return exchange(sim::WaveKind::shuffle_xor, mask, value, source, here);
}

template <typename T>
concept Word = std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t>;

// Only instrumented kernels report atomics: the checker does not see plain accesses of the others.
PLUMB_SIM_UNINSTRUMENTED void note_atomic([[maybe_unused]] const void* address,
                                          [[maybe_unused]] std::size_t bytes,
                                          [[maybe_unused]] bool uses_old_value) {
#ifdef PLUMB_CHECKED_BUILD
  sim::note_atomic(address, bytes, uses_old_value);
#endif
}

// One host thread runs the grid and switches only where threads wait, so plain operations are
// atomic. They are not instrumented, but reported as atomics.
template <Word T>
PLUMB_SIM_UNINSTRUMENTED T atomic_add(T* address, std::type_identity_t<T> value) {
  note_atomic(address, sizeof(T), true);
  const T old = *address;
  *address = static_cast<T>(static_cast<std::uint32_t>(old) + static_cast<std::uint32_t>(value));
  return old;
}

template <Word T>
PLUMB_SIM_UNINSTRUMENTED T atomic_max(T* address, std::type_identity_t<T> value) {
  note_atomic(address, sizeof(T), true);
  const T old = *address;
  if (old < value) *address = value;
  return old;
}

template <Word T>
PLUMB_SIM_UNINSTRUMENTED T atomic_exchange(T* address, std::type_identity_t<T> value) {
  note_atomic(address, sizeof(T), false);
  const T old = *address;
  *address = value;
  return old;
}

inline bool starts_vector(const void* address, unsigned bytes = 16) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

template <int bytes = 16, typename T>
inline Vector<T, bytes> load_vector(const T* from, Here here = Here::current()) {
  if (!starts_vector(from, bytes)) sim::refuse_alignment(from, bytes, here);
  Vector<T, bytes> vector;
  __builtin_memcpy(&vector, from, sizeof vector);
#ifdef PLUMB_CHECKED_BUILD
  // A compiler that sees that some words are unused would load, and report, only the others.
  asm volatile("" : "+m"(vector));
#endif
  return vector;
}

template <typename T, int bytes>
inline void store_vector(T* to, const Vector<T, bytes>& vector, Here here = Here::current()) {
  if (!starts_vector(to, bytes)) sim::refuse_alignment(to, bytes, here);
  __builtin_memcpy(to, &vector, sizeof vector);
}

template <typename T>
inline T* dynamic_shared() {
  return static_cast<T*>(sim::dynamic_shared());
}

template <typename T>
inline const Vector<T>& reloaded(const Vector<T>& vector) {
  return vector;
}

inline int bit_count(std::uint64_t bits) { return std::popcount(bits); }
inline float exp2_approx(float x) { return sim::exp2_rounded(x); }
inline float log2_approx(float x) { return sim::log2_rounded(x); }
inline float rsqrt_approx(float x) { return sim::rsqrt_rounded(x); }
inline std::uint32_t float_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float bits_float(std::uint32_t u) { return std::bit_cast<float>(u); }

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define PLUMB_CLEAR_PADDING(value) __builtin_clear_padding(value)
#endif
#endif

template <class T>
void clear_padding([[maybe_unused]] T& value) {
#ifdef PLUMB_CLEAR_PADDING
  if constexpr (std::is_class_v<T>) PLUMB_CLEAR_PADDING(&value);
#endif
}

template <class T>
void keep_words(const T& value, sim::KeptWords& kept) {
#ifdef PLUMB_CLEAR_PADDING
  constexpr bool kCertain = true;
#else
  constexpr bool kCertain = false;
#endif
  if constexpr (std::is_pointer_v<T>) {
    kept.add_words(&value, sizeof value, true);
  } else if constexpr (std::is_class_v<T>) {
    kept.add_words(&value, sizeof value, kCertain);
  }
}

// Freezes the arguments, converted to the kernel's parameter types, and calls the kernel with them.
template <auto kernel, typename... Parameters>
struct Frozen {
  using Arguments = std::tuple<Parameters...>;
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments travel by value");
  static void invoke(const void* arguments) {
    std::apply(kernel, *static_cast<const Arguments*>(arguments));
  }
  static void keep(const void* arguments, sim::KeptWords& kept) {
    std::apply([&](const Parameters&... each) { (keep_words(each, kept), ...); },
               *static_cast<const Arguments*>(arguments));
  }
};

template <auto kernel, typename... Parameters, typename... Values>
sim::KernelCall freeze(void (*)(Parameters...), std::string name, const LaunchShape& shape,
                       Values&&... values) {
  using Call = Frozen<kernel, Parameters...>;
  using Arguments = typename Call::Arguments;
  static_assert(sizeof...(Parameters) == sizeof...(Values), "one value per kernel parameter");
  const auto arguments =
      std::make_shared<Arguments>(static_cast<Parameters>(std::forward<Values>(values))...);
  std::apply([](Parameters&... each) { (clear_padding(each), ...); }, *arguments);
  return {std::move(name), shape, &Call::invoke, arguments, sizeof(Arguments), &Call::keep};
}

// Removes the parentheses of "(select<4, 64>)": a macro argument with a comma needs them.
inline std::string kernel_name(std::string spelled) {
  return spelled.front() == '(' ? spelled.substr(1, spelled.size() - 2) : spelled;
}

template <auto kernel, typename... Values>
sim::KernelCall make_call(const char* name, const LaunchShape& shape, Values&&... values) {
  return freeze<kernel>(kernel, kernel_name(name), shape, std::forward<Values>(values)...);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
