// SPDX-License-Identifier: Apache-2.0
//
// One op as data: each member of its C struct, as a tensor or a scalar. Host tensors, the
// parameters of a launch, and the row of a recorded call are made of it. table_part.h declares it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cases/tables/formula.h"
#include "cases/tables/row.h"
#include "cases/tables/struct_member.h"
#include "cases/tensors/tensor.h"
#include "device/device.h"

namespace plumb::cases {

// A word parameter and the value of a member that each word stands for. A row without the word has
// the first one, or the platform's own.
struct WordChoices {
  std::string parameter;
  std::vector<std::pair<std::string_view, std::int64_t>> values;
  std::int64_t (*of_platform)(const device::Properties&) = nullptr;
};

// A float that follows from one integer of the row, least .. most.
struct FloatOfInteger {
  std::string parameter;
  float (*value)(std::int64_t) = nullptr;
  std::int64_t most = 0, least = 0;
};

// A float that a choice of the row names: "1e-4".
struct FloatOfChoice {
  ContractChoice choice;
  float value(std::string_view word) const;  // of a word of the choice; "": of its first
};

struct TableScalar {
  StructMember member;
  std::variant<Formula, WordChoices, FloatOfInteger, FloatOfChoice,
               std::function<float(const Row&)>>
      value;
  std::optional<Formula> when = {};  // 0: the member stays 0
  bool of_caller = false;            // a caller may have another value than a case
  std::string says = {};             // of a float
  // Of a float, what a row has that does not set the member itself.
  float real_of(const Row& row) const;
};

struct TableTensor {
  std::string name;
  StructMember member;
  Dtype dtype = Dtype::f32;
  Role role = Role::input;
  bool in_place = false;  // an output that starts as the input <name>_before
  std::string format = "number";
  std::vector<Formula> shape = {}, strides = {};  // in elements; no strides: contiguous
  std::optional<Formula> when = {};               // 0: the case has no such tensor
  std::optional<Formula> dialect = {};            // plumb_format of fp8 codes
  std::optional<Formula> dtype_of_row = {};       // in place of dtype
  std::string scale_layout = "none";
  std::string says = {};
};

// A parameter or word that no scalar or tensor contains, and its value in a call.
struct GivenParameter {
  Formula unknown, value;
};

// A struct that the op's struct points to: host state, kept from call to call.
struct PointedStruct {
  StructMember pointer;
  std::size_t size = 0;
  bool says_its_size = false;        // in its first member
  std::optional<Formula> when = {};  // 0: the pointer is null
};

class OpParams;

class OpTable {
 public:
  // says_its_size: the struct's first member is its size, which has no line.
  explicit OpTable(std::size_t struct_size = 0, bool says_its_size = false);
  OpTable(OpTable&& other) noexcept;
  ~OpTable();

  // Sets the scalars of a case. Throws BadRow, or std::out_of_range for a value too large for its
  // member.
  void set_scalars(const Row& row, const device::Properties* platform, void* params) const;
  // The tensors of a row: inputs, then all others, each in the order of the table.
  struct PlacedTensor {
    TensorSpec spec;
    const TableTensor* declared = nullptr;
  };
  std::vector<PlacedTensor> layout(const FormulaValues& values) const;
  // Sets the stream and all pointers to tensors.
  void bind(const DeviceTensors& tensors, device::Stream stream, void* params) const;
  // Strides as a launch gets them: those that the row makes far are a multiple of what `layout`
  // has, and the rows of `layout` are placed accordingly.
  void spread(const Row& row, void* params) const;
  // The inverse of set_scalars: `row` comes with the op's defaults, and gets the parameters of the
  // call. Throws std::invalid_argument, with the member's name, for a call that no row describes.
  void solve(const void* params, const EngineLimits& limits, Row& row) const;

  // As solve, for a call that a row need not describe: a parameter that the call does not contain
  // keeps the row's default, and call.known lacks it.
  void solve_what_is_there(RowOfCall& call) const;

  // Member, shape and meaning: "x [tokens, hidden]: rows to normalise". Empty for a tensor
  // that is not in the table.
  std::string describe(const TensorSpec& spec) const;
  // Throws std::logic_error for a member without a line, a member with two lines, a number of
  // strides that is not that of the dimensions, or two tensors of one name.
  void check() const;
  // Adds the names of the row's integers and words.
  void collect(std::set<std::string, std::less<>>& integers,
               std::set<std::string, std::less<>>& words) const;

  std::size_t size() const { return size_; }  // of the C struct
  device::Stream stream_of(const void* params) const { return stream_.pointer(params); }
  const std::vector<PointedStruct>& pointed() const { return pointed_; }

  using Field = std::variant<TableScalar, TableTensor, GivenParameter>;
  std::vector<Field>& fields() { return fields_; }
  const std::vector<Field>& fields() const { return fields_; }
  void add(TableScalar scalar);
  TableTensor& add(TableTensor tensor);
  void add(GivenParameter given);
  void add_pointed(PointedStruct pointed);
  void expect_members(std::size_t count) { members_ += count; }  // of C structs
  void set_stream(StructMember stream) { stream_ = std::move(stream); }
  void set_state(StructMember state) { state_ = std::move(state); }
  const std::optional<StructMember>& state() const { return state_; }
  Formula capacity = 0;  // rows, live and padded

 private:
  void verify(const void* params, const OpParams& of_row, const Row& row) const;

  std::size_t size_, members_ = 0;
  bool says_its_size_ = false;
  StructMember stream_;
  std::optional<StructMember> state_;  // of the implementation: neither a tensor nor a scalar
  std::vector<Field> fields_;
  std::vector<PointedStruct> pointed_;
};

// An op's C struct and the structs that it points to. All zero when made.
class OpParams {
 public:
  explicit OpParams(const OpTable& table);
  OpParams(const OpParams& other);
  OpParams& operator=(const OpParams&) = delete;
  void* data() { return own_.get(); }
  const void* data() const { return own_.get(); }

 private:
  void point();

  const OpTable& table_;
  std::unique_ptr<std::byte[]> own_;
  std::vector<std::unique_ptr<std::byte[]>> pointed_;
};

}  // namespace plumb::cases
