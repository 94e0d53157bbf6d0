// SPDX-License-Identifier: Apache-2.0
//
// Capture, instantiation, replay and introspection of graphs. Captures are thread-local: what other
// threads do meanwhile neither joins nor breaks them.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/kernel_node.h"

namespace plumb::device::cuda {

namespace {

// "void plumb::device::cuda_kernels::(anonymous namespace)::select<4, 64>(Params)" -> "select<4,
// 64>", as the launcher spelled it.
std::string short_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return mangled;
  std::string name = text.get();
  int depth = 0;
  std::size_t end = name.size(), begin = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')' || name[i] == '>') ++depth;
    if (name[i] == '(' || name[i] == '<') --depth;
    if (name[i] == '(' && depth == 0 && end == name.size()) end = i;
    const bool separator = name[i] == ' ' || (name[i] == ':' && i > 0 && name[i - 1] == ':');
    if (depth == 0 && end != name.size() && separator) {
      begin = i + 1;
      break;
    }
  }
  return name.substr(begin, end - begin);
}

GraphNode describe_node(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  PLUMB_CUDA(cudaGraphNodeGetType, node, &type);
  switch (type) {
    case cudaGraphNodeTypeMemcpy: return {"copy", ""};
    case cudaGraphNodeTypeMemset: return {"fill", ""};
    case cudaGraphNodeTypeHost: return {"host", ""};
    case cudaGraphNodeTypeKernel: break;
    default: return {"other", ""};
  }
  return {"kernel", short_name(mangled_kernel_name(node))};
}

}  // namespace

void CudaDevice::begin_capture(Stream stream) {
  PLUMB_CUDA(cudaStreamBeginCapture, static_cast<cudaStream_t>(stream),
             cudaStreamCaptureModeThreadLocal);
  capturing_.push_back(static_cast<cudaStream_t>(stream));
}

bool CudaDevice::capturing() { return !capturing_.empty(); }

Graph CudaDevice::end_capture(Stream stream) {
  std::erase(capturing_, static_cast<cudaStream_t>(stream));
  cudaGraph_t graph = nullptr;
  PLUMB_CUDA(cudaStreamEndCapture, static_cast<cudaStream_t>(stream), &graph);
  return graph;
}

std::vector<GraphNode> CudaDevice::nodes(Graph graph) {
  std::size_t count = 0;
  PLUMB_CUDA(cudaGraphGetNodes, static_cast<cudaGraph_t>(graph), nullptr, &count);
  std::vector<cudaGraphNode_t> handles(count);
  PLUMB_CUDA(cudaGraphGetNodes, static_cast<cudaGraph_t>(graph), handles.data(), &count);
  std::vector<GraphNode> all;
  for (const cudaGraphNode_t node : handles) all.push_back(describe_node(node));
  return all;
}

GraphExec CudaDevice::instantiate(Graph graph) {
  cudaGraphExec_t exec = nullptr;
  PLUMB_CUDA(cudaGraphInstantiate, &exec, static_cast<cudaGraph_t>(graph), 0);
  return exec;
}

void CudaDevice::replay(GraphExec graph, Stream stream) {
  PLUMB_CUDA(cudaGraphLaunch, static_cast<cudaGraphExec_t>(graph),
             static_cast<cudaStream_t>(stream));
}

void CudaDevice::destroy_graph(Graph graph) {
  PLUMB_CUDA(cudaGraphDestroy, static_cast<cudaGraph_t>(graph));
}

void CudaDevice::destroy_graph_exec(GraphExec graph) {
  PLUMB_CUDA(cudaGraphExecDestroy, static_cast<cudaGraphExec_t>(graph));
}

}  // namespace plumb::device::cuda
