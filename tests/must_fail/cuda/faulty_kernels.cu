// SPDX-License-Identifier: Apache-2.0
//
// A plug-in for a real device with one planted error, which the variable PLUMB_FAULT names:
//   out_of_bounds      writes behind the last row
//   illegal_address    writes where nothing is mapped
//   endless            never returns
//   race               reads the other warps' sums without waiting for them
//   uninitialized      adds what its output held before
//   divergent_barrier  half of a warp skips a barrier
// The error occurs only if hidden is 3584, so that all other cases have to pass. Without the
// variable, or with another word, every case has to pass.
//   PLUMB_FAULT=endless plumb run --platform cuda-sm90 --plugin faulty_kernels.so --timeout 10
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <plumb/plumb_plugin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr long long kFaultyHidden = 3584;

enum class Fault {
  none,
  out_of_bounds,
  illegal_address,
  endless,
  race,
  uninitialized,
  divergent_barrier
};

Fault fault_of(const char* word) {
  constexpr const char* kWords[] = {"none", "out_of_bounds", "illegal_address",  "endless",
                                    "race", "uninitialized", "divergent_barrier"};
  for (int i = 0; word && i <= static_cast<int>(Fault::divergent_barrier); ++i) {
    if (std::strcmp(word, kWords[i]) == 0) return static_cast<Fault>(i);
  }
  return Fault::none;
}

__device__ float block_sum(float value, Fault fault) {
  __shared__ float partials[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
  if (fault == Fault::divergent_barrier) {
    if (threadIdx.x % 32 < 16) __syncthreads();
  } else if (fault != Fault::race) {
    __syncthreads();
  }
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partials[warp];
  return sum;
}

__device__ void misbehave(const plumb_mtp_shared_head_rms_norm_params& p, Fault fault) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  volatile uint16_t* out = p.out;
  if (fault == Fault::out_of_bounds) out[p.tokens * p.out_row_stride] = 1;
  if (fault == Fault::illegal_address) out[1LL << 45] = 1;
  while (fault == Fault::endless && out != nullptr) __nanosleep(1000);
}

__global__ void faulty_rms_norm_kernel(plumb_mtp_shared_head_rms_norm_params p, Fault fault) {
  const long long row = blockIdx.x;
  const auto* x = reinterpret_cast<const __nv_bfloat16*>(p.x) + row * p.hidden;
  const auto* weight = reinterpret_cast<const __nv_bfloat16*>(p.weight);
  auto* out = reinterpret_cast<__nv_bfloat16*>(p.out) + row * p.out_row_stride;
  misbehave(p, fault);
  float squares = 0;
  for (long long i = threadIdx.x; i < p.hidden; i += kThreads) {
    const float value = __bfloat162float(x[i]);
    squares += value * value;
  }
  const float r = rsqrtf(block_sum(squares, fault) / static_cast<float>(p.hidden) + p.eps);
  for (long long i = threadIdx.x; i < p.hidden; i += kThreads) {
    const float before = fault == Fault::uninitialized ? __bfloat162float(out[i]) : 0.0f;
    out[i] = __float2bfloat16(__bfloat162float(x[i]) * r * __bfloat162float(weight[i]) + before);
  }
}

plumb_status launch(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_shared_head_rms_norm_params*>(params);
  if (p.tokens == 0) return PLUMB_OK;
  const Fault fault =
      p.hidden == kFaultyHidden ? fault_of(std::getenv("PLUMB_FAULT")) : Fault::none;
  faulty_rms_norm_kernel<<<static_cast<unsigned>(p.tokens), kThreads, 0,
                           static_cast<cudaStream_t>(p.stream)>>>(p, fault);
  return cudaGetLastError() == cudaSuccess ? PLUMB_OK : PLUMB_LAUNCH_FAILED;
}

}  // namespace

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host*) {
  static const plumb_numerics numerics = [] {
    plumb_numerics own{};
    own.struct_size = sizeof own;
    own.product = own.accumulator = own.probability = PLUMB_F32;
    own.chains = kThreads / 2;
    own.function_ulp = 2;
    own.deterministic = 1;
    return own;
  }();
  static const plumb_op_entry entry = {"mtp_shared_head_rms_norm", &launch, &numerics, nullptr};
  static const plumb_plugin_table table = {PLUMB_ABI_VERSION,
                                           sizeof(plumb_plugin_table),
                                           "faulty_kernels",
                                           "1.0",
                                           &entry,
                                           sizeof(plumb_op_entry),
                                           1};
  return &table;
}
