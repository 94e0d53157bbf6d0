// SPDX-License-Identifier: Apache-2.0
#include "process/interrupts.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <cstring>

namespace plumb::process {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t arrived = 0;
std::array<struct sigaction, kSignals.size()> before;

}  // namespace

Interrupted::Interrupted(int signal)
    : std::runtime_error(fmt::format("stopped by signal {} ({})", signal, strsignal(signal))),
      signal_(signal) {}

Interrupts::Interrupts(Second second) {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { arrived = signal; };
  action.sa_flags = second == Second::ends_at_once ? static_cast<int>(SA_RESETHAND) : 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    // nohup: a terminal that is closed does not stop the run.
    const bool ignored = kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
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
