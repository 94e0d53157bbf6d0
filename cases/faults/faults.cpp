// SPDX-License-Identifier: Apache-2.0
#include "cases/faults/faults.h"

#include <memory>
#include <sstream>

#include "plumb_mutant_list.h"

namespace plumb::device {
#define PLUMB_DECLARE_MUTANT(name, op, ...) \
  namespace mutant_##name {                 \
    plumb_op_entry op();                    \
  }
PLUMB_FOR_EACH_MUTANT(PLUMB_DECLARE_MUTANT)
#undef PLUMB_DECLARE_MUTANT
}  // namespace plumb::device

namespace plumb::cases {

namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(list)};
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  if (words.empty()) words = {"sim-sm90", "sim-gfx942", "sim-gfx950"};
  return words;
}

// A table with one entry replaced, kept alive as long as somebody can call it.
struct ReplacedTable {
  std::vector<plumb_op_entry> entries;
  plumb_implementation table;
};

std::shared_ptr<ReplacedTable> replace_entry(const plumb_implementation& original,
                                             const plumb_op_entry& entry) {
  auto replaced = std::make_shared<ReplacedTable>();
  replaced->entries.assign(original.entries, original.entries + original.entry_count);
  for (plumb_op_entry& one : replaced->entries) {
    if (std::string_view(one.op) == entry.op) one = entry;
  }
  replaced->table = original;
  replaced->table.name = "mutant";
  replaced->table.entries = replaced->entries.data();
  return replaced;
}

// Hands every call on, but for replay.
class DeadReplay final : public device::Device {
 public:
  explicit DeadReplay(std::unique_ptr<device::Device> inner) : inner_(std::move(inner)) {}

  const device::Properties& properties() const override { return inner_->properties(); }
  void* allocate(std::size_t bytes, std::string_view label) override {
    return inner_->allocate(bytes, label);
  }
  void* allocate_sparse(std::size_t bytes, std::string_view label) override {
    return inner_->allocate_sparse(bytes, label);
  }
  void free(void* memory) override { inner_->free(memory); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) override { inner_->free_pinned(memory); }
  std::vector<device::GuardDamage> check_guards() override { return inner_->check_guards(); }
  device::Stream create_stream() override { return inner_->create_stream(); }
  void destroy_stream(device::Stream stream) override { inner_->destroy_stream(stream); }
  device::Event create_event() override { return inner_->create_event(); }
  void destroy_event(device::Event event) override { inner_->destroy_event(event); }
  void record(device::Event event, device::Stream stream) override {
    inner_->record(event, stream);
  }
  void wait(device::Stream stream, device::Event event) override { inner_->wait(stream, event); }
  void synchronize_event(device::Event event) override { inner_->synchronize_event(event); }
  void synchronize(device::Stream stream) override { inner_->synchronize(stream); }
  void synchronize() override { inner_->synchronize(); }
  void copy(void* to, const void* from, std::size_t bytes, device::Stream stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  void fill(void* to, std::uint8_t value, std::size_t bytes, device::Stream stream) override {
    inner_->fill(to, value, bytes, stream);
  }
  void call_host(void (*function)(void*), void* argument, device::Stream stream) override {
    inner_->call_host(function, argument, stream);
  }
  void begin_capture(device::Stream stream) override { inner_->begin_capture(stream); }
  device::Graph end_capture(device::Stream stream) override { return inner_->end_capture(stream); }
  std::vector<device::GraphNode> nodes(device::Graph graph) override {
    return inner_->nodes(graph);
  }
  device::GraphExec instantiate(device::Graph graph) override { return inner_->instantiate(graph); }
  void replay(device::GraphExec, device::Stream) override {}
  bool capturing() override { return inner_->capturing(); }
  void destroy_graph(device::Graph graph) override { inner_->destroy_graph(graph); }
  void destroy_graph_exec(device::GraphExec graph) override { inner_->destroy_graph_exec(graph); }

 private:
  std::unique_ptr<device::Device> inner_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

const std::vector<Mutant>& all_mutants() {
#define PLUMB_MUTANT(name, op, case_id, says, why, platforms) \
  {#name, #op, case_id, says, why, split(platforms), device::mutant_##name::op()},
  static const std::vector<Mutant> mutants{PLUMB_FOR_EACH_MUTANT(PLUMB_MUTANT)};
#undef PLUMB_MUTANT
  return mutants;
}

RunOptions with_mutant(RunOptions options, const Mutant& mutant) {
  options.implementation =
      [mutant, tables = std::make_shared<std::vector<std::shared_ptr<ReplacedTable>>>()](
          std::string_view platform, bool) -> const plumb_implementation& {
    tables->push_back(replace_entry(device::builtin_implementation(platform), mutant.entry));
    return tables->back()->table;
  };
  return options;
}

RunOptions with_dead_replay(RunOptions options) {
  options.open = [open = options.open](std::string_view platform,
                                       const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(new DeadReplay(open(platform, conditions)));
  };
  return options;
}

RunOptions with_warm_up_state_kept(RunOptions options) {
  options.fresh_state_for_capture = false;
  return options;
}

}  // namespace plumb::cases
