// SPDX-License-Identifier: Apache-2.0
//
// Everything that a kernel uses. Three back ends define the same names (device/sim, device/cuda,
// device/hip). The include path of the build chooses whose simt_back_end.h is included.
//
//   PLUMB_KERNEL                         marks a kernel
//   PLUMB_DEVICE                         marks a function that kernels call; internal linkage
//   PLUMB_METHOD                         marks a member function that kernels call
//   PLUMB_SHARED(type, name, count)      static shared array; the simulator poisons it
//   dynamic_shared<T>()                  start of the dynamic shared memory
//   thread_index() block_size()          int
//   block_index_x() block_index_y()      int
//   grid_size_x() grid_size_y()          int
//   lane_index() wave_index()            lane within the physical wave, wave within the block
//   wave_size()                          32 or 64, at run time
//   LaneMask, all_lanes()                64 bits; the lanes that this wave has
//   whole_wave()                         mask of a full wave, a constant: most checks of a wave
//                                        operation vanish. For blocks of full waves only
//   block_sync()                         barrier of all threads of the block that have not returned
//   wave_sync(mask)                      barrier of these lanes of the wave; orders their memory
//   ballot(mask, predicate)              -> LaneMask
//   shuffle(mask, v, lane, width)        value of `lane` within groups of `width` lanes
//   shuffle_down(mask, v, delta, width)
//   shuffle_xor(mask, v, bits, width)
//   atomic_add(p, v) atomic_max(p, v)    return the old value; shared or global, int32 or uint32
//   atomic_exchange(p, v)                returns the old value
//   exp2_approx(x) log2_approx(x)        fp32; each back end documents the accuracy
//   rsqrt_approx(x)                      fp32; each back end documents the accuracy
//   float_bits(x) bits_float(u)          reinterpret bits
//   bit_count(u)                         population count of 64 bits
//   PLUMB_UNROLL                         before a loop whose counter indexes an array in registers:
//                                        without unrolling the array would be in memory
//   PLUMB_NO_UNROLL                      before a loop of few rounds: unrolled, it would only take
//                                        registers and room in the instruction cache
//   load_vector(p) store_vector(p, v)    one access of 16 bytes, with load_vector<8>(p) of 8, or of
//                                        the Vector's size; p must be a multiple of that size
//                                        (starts_vector)
//   reloaded(v)                          the same Vector, opaque to the compiler: it decodes it
//                                        again and keeps no decoded copy in registers
//   PLUMB_BOUNDS(threads, blocks)        after PLUMB_KERNEL: most threads of a block, and how many
//                                        such blocks are to fit on a multiprocessor
//
// Only some back ends have these, and define the macro then:
//
//   PLUMB_NATIVE_BF16      native_bf16(x), native_bf16_pair(low, high): nearest even, NaN is kept;
//                          native_larger_bf16_sizes(so_far, pair): larger magnitudes, ignoring NaN
//   PLUMB_NATIVE_FMA       native_fma(a, b, c): a * b + c, rounded once
//   PLUMB_NATIVE_E4M3FN    native_e4m3fn_pair(low, high): nearest even, saturating, NaN is kept
//   PLUMB_MATRIX_MIXING    launch_matrix_partials (hyper_connection/mhc_mixing.h)
//   PLUMB_CLUSTERED_HEAD   launch_clustered_hc_head (hyper_connection/hc_head.cu)
// Mutants are compiled without the last two.
//
// Host functions for launchers:
//
//   LaunchShape{grid_x, grid_y, block, dynamic_shared_bytes}
//   PLUMB_LAUNCH(kernel, shape, stream, arguments...)   -> plumb_status; arguments by value
//   stream_properties(stream)                           -> const Properties&
#pragma once

#include <plumb/ops/types.h>

#include "device/device.h"
#include "device/simt_vector.h"
#include "simt_back_end.h"
