// SPDX-License-Identifier: Apache-2.0
//
// What a kernel sees. Three back ends provide the same names (device/sim, device/cuda, device/hip):
// the include path of the build decides which one this header is.
//
//   PLUMB_KERNEL                         on a kernel
//   PLUMB_DEVICE                         on a function that kernels call; internal linkage
//   PLUMB_METHOD                         on a member function that kernels call
//   PLUMB_SHARED(type, name, count)      static shared array, starts as poison
//   dynamic_shared<T>()                  start of the dynamic shared memory
//   thread_index() block_size()          int
//   block_index_x() block_index_y()      int
//   grid_size_x() grid_size_y()          int
//   lane_index() wave_index()            within the physical wave
//   wave_size()                          32 or 64, at run time
//   LaneMask, all_lanes()                64 bits; the lanes of this wave
//   whole_wave()                         the same where blocks are made of whole waves: a constant,
//                                        which saves a wave operation most of its checks
//   block_sync()                         all threads of the block that have not returned
//   wave_sync(mask)                      the named lanes of this wave; orders their memory
//   ballot(mask, predicate)              -> LaneMask
//   shuffle(mask, v, lane, width)        value of `lane` within groups of `width` lanes
//   shuffle_down(mask, v, delta, width)
//   shuffle_xor(mask, v, bits, width)
//   atomic_add(p, v) atomic_max(p, v)    old value; shared or global, int32 or uint32
//   atomic_exchange(p, v)                old value
//   exp2_approx(x) log2_approx(x)        fp32, accuracy as the back end documents
//   rsqrt_approx(x)                      the same
//   float_bits(x) bits_float(u)          reinterpretation
//   bit_count(u)                         ones of 64 bits
//   PLUMB_UNROLL                         before a loop whose index picks registers: without it an
//                                        array that could be registers is memory
//   PLUMB_NO_UNROLL                      before a loop of few rounds: copies of it would only take
//                                        registers, and room in the instruction cache
//   load_vector(p) store_vector(p, v)    16 bytes, or as many as the Vector has, in one access;
//                                        refused unless p is a multiple of that many
//                                        (starts_vector)
//   reloaded(v)                          a Vector's bits, as if loaded again: what was decoded from
//                                        them is not kept in registers meanwhile
//   PLUMB_BOUNDS(threads, blocks)        after PLUMB_KERNEL: most threads of a block, and how many
//                                        such blocks a multiprocessor is to hold
//
// What only some back ends have, and say so by a macro:
//
//   PLUMB_NATIVE_BF16      native_bf16(x), native_bf16_pair(low, high): nearest even, NaN stays
//   NaN;
//                          native_larger_bf16_sizes(so_far, pair): a NaN counts as nothing
//   PLUMB_NATIVE_FMA       native_fma(a, b, c): a * b + c, rounded once
//   PLUMB_NATIVE_E4M3FN    native_e4m3fn_pair(low, high): the same, saturating
//   PLUMB_MATRIX_MIXING    launch_matrix_partials (device/kernels/hyper_connection/mhc_mixing.h);
//   not in mutants PLUMB_CLUSTERED_HEAD   launch_clustered_hc_head
//   (device/kernels/hyper_connection/hc_head.cu); not in mutants
//
// On the host, for launchers:
//
//   LaunchShape{grid_x, grid_y, block, dynamic_shared_bytes}
//   PLUMB_LAUNCH(kernel, shape, stream, arguments...)   -> plumb_status; arguments by value
//   stream_properties(stream)                           -> const Properties&
#pragma once

#include <plumb/ops/types.h>

#include "device/device.h"
#include "device/simt_vector.h"
#include "simt_back_end.h"
