// SPDX-License-Identifier: Apache-2.0
//
// Describes one op as data: each member of its C struct as a tensor or a scalar. Host tensors,
// launch parameters, and rows of recorded calls are derived from it. table_part.h has functions to
// declare it.
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

// A word parameter, and the member value that each word stands for. A row without the word has the
// platform's value if `of_platform` is set, else the first value.
struct WordChoices {
  std::string parameter;
  std::vector<std::pair<std::string_view, std::int64_t>> values;
  std::int64_t (*of_platform)(const device::Properties&) = nullptr;
};

// A float member that is computed from one integer parameter in least .. most.
struct FloatOfInteger {
  std::string parameter;
  float (*value)(std::int64_t) = nullptr;
  std::int64_t most = 0, least = 0;
};

// A float member whose value is named by one of the row's choices: "1e-4".
struct FloatOfChoice {
  ContractChoice choice;
  float value(std::string_view word) const;  // value of a word; "": of the choice's first word
};

struct TableScalar {
  StructMember member;
  std::variant<Formula, WordChoices, FloatOfInteger, FloatOfChoice,
               std::function<float(const Row&)>>
      value;
  std::optional<Formula> when = {};  // condition; if it is 0 the member stays 0
  bool of_caller = false;            // true: a caller's value may differ from a case's
  std::string says = {};             // meaning of a float, for documentation
  // Value of a float member in a row that does not set the member itself.
  float real_of(const Row& row) const;
};

struct TableTensor {
  std::string name;
  StructMember member;
  Dtype dtype = Dtype::f32;
  Role role = Role::input;
  bool in_place = false;  // true: an output that starts as the input <name>_before
  std::string format = "number";
  // In elements; without strides the tensor is contiguous.
  std::vector<Formula> shape = {}, strides = {};
  std::optional<Formula> when = {};          // condition; if it is 0 the case lacks the tensor
  std::optional<Formula> dialect = {};       // plumb_format of the tensor's fp8 codes
  std::optional<Formula> dtype_of_row = {};  // replaces `dtype`
  std::string scale_layout = "none";
  std::string says = {};
};

// A parameter or word that is in no scalar's or tensor's formula, with a formula for its value in a
// call.
struct GivenParameter {
  Formula unknown, value;
};

// A struct of host state that the op's struct points to. It is kept from call to call.
struct PointedStruct {
  StructMember pointer;
  std::size_t size = 0;
  bool says_its_size = false;        // the first member holds the struct's size
  std::optional<Formula> when = {};  // condition; if it is 0 the pointer is null
};

class OpParams;

class OpTable {
 public:
  // says_its_size: the struct's first member holds its size, and is not in the table.
  explicit OpTable(std::size_t struct_size = 0, bool says_its_size = false);
  OpTable(OpTable&& other) noexcept;
  ~OpTable();

  // Sets the scalars of a case. Throws BadRow, std::out_of_range for a value that its member cannot
  // hold, or std::invalid_argument, with the member's name, for a formula without a value.
  void set_scalars(const Row& row, const device::Properties* platform, void* params) const;
  // The tensors of a row: inputs, then all others, each in the order of the table.
  struct PlacedTensor {
    TensorSpec spec;
    const TableTensor* declared = nullptr;
  };
  std::vector<PlacedTensor> layout(const FormulaValues& values) const;
  // Sets the stream and all tensor pointers in `params`.
  void bind(const DeviceTensors& tensors, device::Stream stream, void* params) const;
  // Multiplies the strides for which the row has a far_ parameter (widened_strides.h), for a
  // launch. layout() keeps the host's strides, and places the tensors' rows on the device to match.
  void spread(const Row& row, void* params) const;
  // The inverse of set_scalars. `row` comes with the op's defaults and gets the parameters of the
  // call. Throws std::invalid_argument (with the member's name) if no row describes the call.
  void solve(const void* params, const EngineLimits& limits, Row& row) const;

  // As solve, but a parameter that the call does not determine keeps the row's default and is not
  // in call.known.
  void solve_what_is_there(RowOfCall& call) const;

  // "x [tokens, hidden]: rows to normalise": member, shape and meaning. "" for a tensor that is not
  // in the table.
  std::string describe(const TensorSpec& spec) const;
  // Throws std::logic_error if a member of the C struct has no entry or two entries in the table,
  // if strides and dimensions differ in number, or if two tensors have the same name.
  void check() const;
  // Adds the names of the integers and words that rows of this op have.
  void collect(std::set<std::string, std::less<>>& integers,
               std::set<std::string, std::less<>>& words) const;

  std::size_t size() const { return size_; }  // bytes of the C struct
  device::Stream stream_of(const void* params) const { return stream_.pointer(params); }
  const std::vector<PointedStruct>& pointed() const { return pointed_; }

  using Field = std::variant<TableScalar, TableTensor, GivenParameter>;
  std::vector<Field>& fields() { return fields_; }
  const std::vector<Field>& fields() const { return fields_; }
  void add(TableScalar scalar);
  TableTensor& add(TableTensor tensor);
  void add(GivenParameter given);
  void add_pointed(PointedStruct pointed);
  // Adds to the number of struct members that check() expects in the table.
  void expect_members(std::size_t count) { members_ += count; }
  void set_stream(StructMember stream) { stream_ = std::move(stream); }
  void set_state(StructMember state) { state_ = std::move(state); }
  const std::optional<StructMember>& state() const { return state_; }
  Formula capacity = 0;  // number of rows, live and padded

 private:
  void verify(const void* params, const OpParams& of_row, const Row& row) const;

  std::size_t size_, members_ = 0;
  bool says_its_size_ = false;
  StructMember stream_;
  std::optional<StructMember> state_;  // state of the implementation: neither a tensor nor a scalar
  std::vector<Field> fields_;
  std::vector<PointedStruct> pointed_;
};

// An op's C struct and the structs that it points to. All bytes are zero after construction.
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
