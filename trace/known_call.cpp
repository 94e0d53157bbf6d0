// SPDX-License-Identifier: Apache-2.0
#include "trace/known_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "cases/tables/registry.h"

namespace plumb::trace {

namespace {

// The op dtype of an element type; nullopt: no op has such elements.
std::optional<cases::Dtype> dtype_of(const ElementType& type) {
  using cases::Dtype;
  if (type.name == "f32") return Dtype::f32;
  if (type.name == "bf16") return Dtype::bf16;
  if (type.name == "i32" || type.name == "u32") return Dtype::i32;
  if (type.name == "i64" || type.name == "u64") return Dtype::i64;
  if (type.bytes == 1) return Dtype::u8;
  return std::nullopt;
}

struct LaidOutBlocks final : BytesOwner {
  cases::Bytes bytes;
  explicit LaidOutBlocks(std::size_t size) : bytes(size) {}
};

// Bytes of the whole tensor. Blocks that were not recorded are zeros, because the call did not
// touch them.
StoredBytes laid_out(const std::string& name, const TraceTensor& tensor, const StepBytes& bytes) {
  if (tensor.elements() == 0) return {};
  const StoredBytes stored = bytes.of(tensor);
  if (!tensor.blocks) return stored;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // bytes
  const std::int64_t all = tensor.elements() * tensor.type.bytes;
  if (all > kMost) throw NotJudged(fmt::format("{} has {} bytes, too many", name, all));
  const auto whole = std::make_shared<LaidOutBlocks>(static_cast<std::size_t>(all));
  const std::int64_t block = all / tensor.shape.front();
  for (std::size_t i = 0; i < tensor.blocks->size(); ++i) {
    std::copy_n(stored.bytes.begin() + static_cast<std::ptrdiff_t>(i) * block, block,
                whole->bytes.begin() + (*tensor.blocks)[i] * block);
  }
  return {whole->bytes, whole};
}

void add_scalars(const TraceCall& call, cases::GivenCall& given) {
  for (const auto& [name, value] : call.scalars) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) given.integers[name] = *integer;
    if (const auto* word = std::get_if<std::string>(&value)) given.words[name] = *word;
    if (const auto* real = std::get_if<double>(&value)) {
      given.reals[name] = static_cast<float>(*real);
    }
  }
}

}  // namespace

cases::NumericSettings settings_of(const std::map<std::string, TraceScalar>& numerics) {
  cases::NumericSettings settings;
  for (const auto& [name, value] : numerics) {
    if (const auto* word = std::get_if<std::string>(&value)) {
      settings[name] = cases::numeric_word(name, *word);
    } else if (const auto* real = std::get_if<double>(&value)) {
      settings[name] = *real;
    } else {
      settings[name] = static_cast<double>(std::get<std::int64_t>(value));
    }
  }
  return settings;
}

std::string why_not_judged() {
  try {
    throw;
  } catch (const BadTrace&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& why) {
    return why.what();
  }
}

bool is_known_op(const std::string& op) {
  return std::ranges::any_of(cases::all_ops(),
                             [&](const cases::OpDefinition& one) { return one.name == op; });
}

KnownCall::KnownCall(const TraceCall& call, const StepBytes& bytes,
                     const cases::RowSampling& sampling) {
  if (!is_known_op(call.op)) throw NotJudged("plumb has no such op");
  for (const auto& [name, tensor] : call.before) {
    add(call.after.contains(name) ? name + "_before" : name, tensor, bytes);
  }
  for (const auto& [name, tensor] : call.after) add(name, tensor, bytes);
  add_scalars(call, given_);
  for (const auto& [name, word] : call.profile.words) given_.words.try_emplace(name, word);
  std::map<std::string, TraceScalar> numerics = call.numerics;
  numerics.insert(call.profile.numerics.begin(), call.profile.numerics.end());
  call_.emplace(call.op, given_, settings_of(numerics), true, sampling);
  for (const StoredBytes& one : held_) {
    if (one.owner) one.owner->leave_memory();
  }
}

void KnownCall::add(const std::string& name, const TraceTensor& tensor, const StepBytes& bytes) {
  const auto dtype = dtype_of(tensor.type);
  if (!dtype) throw NotJudged(fmt::format("{} has elements of {}", name, tensor.type.name));
  if (tensor.data.empty() && tensor.elements() != 0) {
    throw NotJudged(fmt::format("the values of {} were not recorded", name));
  }
  cases::GivenTensor& given = given_.tensors[name];
  given.dtype = *dtype;
  given.shape = tensor.shape;
  given.strides.resize(tensor.shape.size());
  std::int64_t stride = tensor.type.bytes;
  for (std::size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) {
    given.strides[i] = stride;
  }
  // Tensors of ops have at least one dimension; a scalar tensor of an engine has none.
  if (given.shape.empty()) {
    given.shape = {1};
    given.strides = {tensor.type.bytes};
  }
  held_.push_back(laid_out(name, tensor, bytes));
  given.data = held_.back().bytes.data();
}

}  // namespace plumb::trace
