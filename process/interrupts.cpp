// SPDX-License-Identifier: Apache-2.0
#include "process/interrupts.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstring>

namespace plumb::process {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> arrived = 0;
// A signal handler may only use lock-free atomics.
static_assert(std::atomic<int>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> before;
std::atomic<bool> second_ends = false;

bool stays_ignored(std::size_t i) {
  // Under nohup, SIGHUP stays ignored: closing the terminal must not stop the run.
  return kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
}

void note(int signal) {
  arrived = signal;
  if (!second_ends) return;
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (!stays_ignored(i)) sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace

Interrupted::Interrupted(int signal)
    : std::runtime_error(fmt::format("stopped by signal {} ({})", signal, strsignal(signal))),
      signal_(signal) {}

Interrupts::Interrupts(Second second) {
  struct sigaction action = {};
  action.sa_handler = note;
  // With SA_RESTART a signal does not cut off the write of a report. The waits of this library use
  // poll, which a signal interrupts even with SA_RESTART.
  action.sa_flags = SA_RESTART;
  second_ends = second == Second::ends_at_once;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (!stays_ignored(i)) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  arrived = 0;
}

int Interrupts::signal() { return arrived; }

void Interrupts::check() {
  if (arrived != 0) throw Interrupted(arrived);
}

std::string name_of_signal(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return fmt::format("signal {}", signal);
  }
}

}  // namespace plumb::process
