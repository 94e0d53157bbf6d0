// SPDX-License-Identifier: Apache-2.0
//
// mtp_input_rms_norm as written for an engine: 16-byte loads, warp shuffles, one block per row. It
// uses only plumb's C ABI.
//   plumb run --platform cuda-sm90 --plugin cuda_kernels.so --op mtp_input_rms_norm
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <plumb/plumb_plugin.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kVector = 8;  // bf16 elements in a float4

const plumb_host* host;

__device__ float block_sum(float value) {
  __shared__ float partials[kWarps];
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < kWarps; ++warp) sum += partials[warp];
  return sum;
}

union Vector {
  float4 bits;
  __nv_bfloat16 values[kVector];
};

// Block (token, role): role 0 is the embedding, role s + 1 is slot (stream) s.
__global__ void __launch_bounds__(kThreads)
    mtp_input_rms_norm_kernel(plumb_mtp_input_rms_norm_params p) {
  const long long token = blockIdx.x;
  const long long slot = static_cast<long long>(blockIdx.y) - 1;
  const bool embedding = slot < 0;
  const long long row = embedding ? token : token * p.hc_mult + slot;
  const bool keep = !embedding || p.positions[token] != 0;
  const auto* x =
      reinterpret_cast<const float4*>((embedding ? p.embeds : p.previous_hidden) + row * p.hidden);
  const auto* weight = reinterpret_cast<const float4*>(embedding ? p.enorm_weight : p.hnorm_weight);
  auto* out =
      reinterpret_cast<float4*>(embedding ? p.out_embeds + token * p.out_embeds_row_stride
                                          : p.out_hidden + token * p.out_hidden_token_stride +
                                                slot * p.out_hidden_slot_stride);
  const long long vectors = p.hidden / kVector;

  float squares = 0;
  for (long long v = threadIdx.x; keep && v < vectors; v += kThreads) {
    const Vector in{x[v]};
    for (int i = 0; i < kVector; ++i) {
      const float value = __bfloat162float(in.values[i]);
      squares += value * value;
    }
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(p.hidden) + p.eps);
  for (long long v = threadIdx.x; v < vectors; v += kThreads) {
    const Vector in{x[v]}, w{weight[v]};
    Vector result{};
    for (int i = 0; i < kVector; ++i) {
      const float value = keep ? __bfloat162float(in.values[i]) : 0.0f;
      result.values[i] = __float2bfloat16(value * scale * __bfloat162float(w.values[i]));
    }
    out[v] = result.bits;
  }
}

plumb_status refuse(plumb_status status, const char* why) {
  host->explain(host->context, why);
  return status;
}

plumb_status mtp_input_rms_norm(const void* params) {
  const auto& p = *static_cast<const plumb_mtp_input_rms_norm_params*>(params);
  const plumb_device* device = host->device(host->context, p.stream);
  if (!device || device->simulated) return refuse(PLUMB_UNSUPPORTED, "needs a CUDA device");
  if (p.hidden % kVector != 0) return refuse(PLUMB_UNSUPPORTED, "hidden is no multiple of 8");
  if (p.out_embeds_row_stride % kVector != 0 || p.out_hidden_token_stride % kVector != 0 ||
      p.out_hidden_slot_stride % kVector != 0) {
    return refuse(PLUMB_UNSUPPORTED, "a stride is no multiple of 8");
  }
  if (p.hc_mult > 65534) return refuse(PLUMB_UNSUPPORTED, "more slots than a grid has rows");
  if (p.tokens == 0) return PLUMB_OK;
  const dim3 grid(static_cast<unsigned>(p.tokens), static_cast<unsigned>(p.hc_mult + 1));
  mtp_input_rms_norm_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(p.stream)>>>(p);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? PLUMB_OK : refuse(PLUMB_LAUNCH_FAILED, cudaGetErrorString(error));
}

}  // namespace

PLUMB_PLUGIN_EXPORT const plumb_plugin_table* plumb_plugin(const plumb_host* services) {
  // fp32 throughout. Each of 256 threads sums sequentially; a tree in each warp adds the threads'
  // sums, and the 8 warp sums are added one by one. Declared as 128 chains that meet in a tree.
  static const plumb_numerics numerics = [] {
    plumb_numerics own{};
    own.struct_size = sizeof own;
    own.product = own.accumulator = own.probability = PLUMB_F32;
    own.chains = kThreads / 2;
    own.function_ulp = 2;
    own.deterministic = 1;
    return own;
  }();
  static const plumb_op_entry entry = {"mtp_input_rms_norm", &mtp_input_rms_norm, &numerics,
                                       nullptr, "rounding=once"};
  static const plumb_plugin_table table = {PLUMB_ABI_VERSION,
                                           sizeof(plumb_plugin_table),
                                           "cuda_example",
                                           "1.0",
                                           &entry,
                                           sizeof(plumb_op_entry),
                                           1};
  if (services->abi_version == PLUMB_ABI_VERSION) host = services;
  return &table;
}
