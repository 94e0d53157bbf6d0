// SPDX-License-Identifier: Apache-2.0
//
// Requests to worker processes: a crash, a hang or a wrong answer costs one request.
#include "process/worker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "process/codec_fields.h"
#include "process/interrupts.h"
#include "process/run.h"

namespace plumb::process {
namespace worker_test {

using Result = std::variant<Bytes, Death>;

Worker stub(double timeout, const std::string& role = "worker") {
  WorkerOptions options{{PLUMB_PROCESS_STUB}, role, timeout};
  options.end_timeout = 1;
  return Worker(options);
}

std::string why(const Result& answer) {
  const auto* death = std::get_if<Death>(&answer);
  return death != nullptr ? death->why : "it answered";
}

Result ask_for(Worker& worker, const std::string& name) { return worker.run({7, name, {}}); }

// Whatever happened before, the next request is answered.
void expect_it_goes_on(Worker& worker) {
  const Result answer = worker.run({41, "number", {}});
  ASSERT_EQ(why(answer), "it answered");
  EXPECT_EQ(std::get<Bytes>(answer), Bytes{42});
}

std::string process_of(Worker& worker) {
  const Bytes id = std::get<Bytes>(ask_for(worker, "process"));
  return {id.begin(), id.end()};
}

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Worker, AnswersRequestAfterRequestInOneProcess) {
  Worker worker = stub(60);
  const std::string process = process_of(worker);
  for (std::uint8_t task = 0; task < 50; ++task) {
    EXPECT_EQ(std::get<Bytes>(worker.run({task, "number", {}})),
              Bytes{static_cast<std::uint8_t>(task + 1)});
  }
  EXPECT_EQ(process_of(worker), process);
  EXPECT_EQ(std::get<Bytes>(ask_for(worker, "much")).size(), std::size_t{3} << 20);
  worker.retire();
  EXPECT_NE(process_of(worker), process);
}

TEST(Worker, ADeathIsNamedAndCostsOneRequest) {
  Worker worker = stub(60);
  const std::pair<const char*, const char*> deaths[] = {
      {"crash", "its process ended with signal 11 (Segmentation fault)"},
      {"exit", "its process ended with exit code 3"},
      {"throw", "on purpose"},
      {"no memory", "not enough memory in its process"},
      {"nonsense", "its process answered nonsense: no message of a worker"},
      {"long", "its process answered nonsense: no message of a worker"},
      {"fork and die", "its process ended with signal 11 (Segmentation fault)"}};
  for (const auto& [name, text] : deaths) {
    EXPECT_EQ(why(ask_for(worker, name)), text) << name;
    expect_it_goes_on(worker);
  }
  EXPECT_EQ(why(ask_for(worker, "no struct")).find("its process answered nonsense: "), 0u);
  expect_it_goes_on(worker);
}

TEST(Worker, AnEndlessRequestIsEnded) {
  Worker worker = stub(0.2);
  const Result answer = ask_for(worker, "hang");
  EXPECT_EQ(why(answer), "no result after 0.2 s; its process was ended");
  EXPECT_TRUE(std::get<Death>(answer).timed_out);
  expect_it_goes_on(worker);
}

TEST(Worker, AProcessThatClosesItsChannelAndHangsIsEnded) {
  for (const double timeout : {0.5, 0.0}) {
    Worker worker = stub(timeout);
    for (const char* name : {"close", "shut down"}) {
      Result answer;
      EXPECT_LT(seconds_of([&] { answer = ask_for(worker, name); }), 10) << name;
      EXPECT_EQ(why(answer), "it closed its channel and did not end; its process was ended");
      expect_it_goes_on(worker);
    }
  }
}

TEST(Worker, AProcessThatIsNeverReadyIsEnded) {
  WorkerOptions options{{PLUMB_PROCESS_STUB}, "never ready"};
  options.start_timeout = 0.3;
  Worker worker(options);
  EXPECT_EQ(why(ask_for(worker, "number")), "it was not ready after 0.3 s; its process was ended");
}

TEST(Worker, ACopyOfTheProcessAnswersNothing) {
  Worker worker = stub(60);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(why(ask_for(worker, "fork")), "it forked and did not wait for the new process");
    expect_it_goes_on(worker);
  }
}

TEST(Worker, ADeathBetweenTwoRequestsNamesTheOneBefore) {
  Worker worker = stub(60);
  ask_for(worker, "die later");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(why(ask_for(worker, "number")),
            "its process ended with signal 14 (Alarm clock) after it had answered die later");
  expect_it_goes_on(worker);
}

TEST(Worker, AnInterruptIsThrownAndTheProcessEnds) {
  Worker worker = stub(60);
  const auto process = static_cast<pid_t>(std::stol(process_of(worker)));
  {
    const Interrupts interrupts;
    std::jthread later([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(getpid(), SIGTERM);
    });
    EXPECT_THROW(ask_for(worker, "hang"), Interrupted);
    EXPECT_EQ(Interrupts::signal(), SIGTERM);
  }
  worker.retire();
  EXPECT_EQ(kill(process, 0), -1);
}

TEST(Worker, AProgramThatCannotBeStartedIsAnError) {
  Worker worker({{"/no/such/program"}});
  EXPECT_THROW(ask_for(worker, "number"), CannotStart);
  Worker other({{"/bin/true"}});
  EXPECT_EQ(why(ask_for(other, "number")), "its process ended with exit code 0");
}

TEST(Worker, WithoutDescriptorsNoneCanBeStarted) {
  Worker worker = stub(60);
  rlimit usual;
  getrlimit(RLIMIT_NOFILE, &usual);
  const rlimit few{4, usual.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_THROW(ask_for(worker, "number"), CannotStart);
  setrlimit(RLIMIT_NOFILE, &usual);
  expect_it_goes_on(worker);
}

TEST(WorkerRole, IsNoneWithoutAParent) {
  EXPECT_EQ(worker_role(), "");
  const auto code_with = [](const std::string& variable) {
    return run_to_end({{PLUMB_PROCESS_STUB}, "", {variable}}, {60}).code;
  };
  EXPECT_EQ(code_with("OTHER=x"), 9);
  EXPECT_EQ(code_with("PLUMB_WORKER_CHANNEL=x"), 8);
  EXPECT_EQ(code_with("PLUMB_WORKER_CHANNEL=3"), 8);
  EXPECT_EQ(code_with("PLUMB_WORKER_CHANNEL=0"), 8);
}

enum class Colour { red, green };
std::string_view name_of(Colour colour) { return colour == Colour::red ? "red" : "green"; }
PLUMB_ENUM_BY_NAME(Colour, 2)

struct Example {
  Colour colour = Colour::red;
  double number = 0;
  std::optional<std::string> text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Example, colour, number, text)

TEST(Codec, KeepsNanInfinityAbsenceAndNames) {
  const auto again = decode<Example>(encode(Example{Colour::green, std::nan(""), "a"}));
  EXPECT_EQ(again.colour, Colour::green);
  EXPECT_TRUE(std::isnan(again.number));
  EXPECT_EQ(again.text, "a");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode<Example>(encode(Example{Colour::red, infinity, {}})).number, infinity);
  EXPECT_FALSE(decode<Example>(encode(Example{})).text.has_value());
  EXPECT_EQ(nlohmann::json(Example{})["colour"], "red");
}

TEST(Codec, RefusesOtherBytes) {
  Bytes cut = encode(Example{});
  cut.resize(cut.size() / 2);
  EXPECT_THROW(decode<Example>(cut), BadMessage);
  EXPECT_THROW(decode<Example>({}), BadMessage);
  EXPECT_THROW(decode<Example>(encode(nlohmann::json{{"colour", "blue"}})), BadMessage);
  EXPECT_THROW(decode<Example>(encode(nlohmann::json{{"colour", 1}})), BadMessage);
}

}  // namespace worker_test
}  // namespace plumb::process
