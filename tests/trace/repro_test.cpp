// SPDX-License-Identifier: Apache-2.0
//
// Tests that plumb judge --repro writes a Python file that runs and shows the wrong element. A
// module of a few lines replaces torch, so the tests do not need torch.
#include <cstdlib>

#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace repro_test {

constexpr const char* kTorch = R"(import struct
uint8, bfloat16 = "B", "bf16"
class Tensor:
    def __init__(self, data, dtype, shape=None):
        self.data, self.dtype, self.shape = data, dtype, shape
    def view(self, how):
        return Tensor(self.data, how, None) if isinstance(how, str) else Tensor(self.data, self.dtype, how)
    def to(self, device): return self
    def contiguous(self): return self
    def flatten(self): return self
    def __getitem__(self, place):
        assert self.dtype == "bf16" and len(self.data) == 2 * self.shape[0] * self.shape[1]
        return Tensor(self.data[2 * place:2 * place + 2], "bf16")
    def item(self): return struct.unpack("<f", b"\0\0" + self.data)[0]
def frombuffer(data, dtype): return Tensor(bytes(data), dtype)
def zeros(shape, dtype, device): return Tensor(bytes(2 * shape[0] * shape[1]), dtype, shape)
)";

class ReproOfACall : public CommandLine {
 protected:
  std::string trace(const ExampleStep& step) const {
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    step.write(path("trace/rank-0/step-000000.h5"));
    return path("trace");
  }
  // Output of the written file, followed by "code N", run with the torch module above.
  std::string run_repro() const {
    write("torch.py", kTorch);
    const std::string command =
        "cd " + folder_.string() + " && /usr/bin/python3 repro.py >printed 2>&1";
    const int code = std::system(command.c_str());
    return contents(path("printed")) + "code " + std::to_string(WEXITSTATUS(code));
  }
};

TEST_F(ReproOfACall, HasTheWrongRowAlone) {
  ExampleStep step;
  step.norm();
  step.norm(1e-6, 1, 2);  // row 2 is multiplied by 2
  const Finished finished = run({"judge", trace(step), "--repro", path("repro.py")});
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err, "");
  const std::string text = contents(path("repro.py"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25);
  EXPECT_NE(text.find("# rms_norm (Norm.forward) of example, call 0/0/1 of a trace, row 2 of 3."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("x = tensor(torch.bfloat16, [1, 64], \""), std::string::npos) << text;
  EXPECT_NE(text.find("weight = tensor(torch.bfloat16, [64], \""), std::string::npos) << text;
  EXPECT_NE(text.find("eps = 1e-06\n"), std::string::npos) << text;
  const std::string printed = run_repro();
  EXPECT_EQ(printed.find("out[2, "), 0u) << printed;
  EXPECT_NE(printed.find("code 1"), std::string::npos) << printed;
}

// If the trace has a line of Python that runs the kernel (`invoke`) and the kernel is right, its
// result replaces the wrong recorded one and passes.
TEST_F(ReproOfACall, RunsTheLineOfTheTrace) {
  ExampleStep step;
  step.norm(1e-6, 0, 1)["invoke"] = "out = Kernel(x).out\n";
  run({"judge", trace(step), "--repro", path("repro.py")});
  std::string text = contents(path("repro.py"));
  EXPECT_NE(text.find("\nout = torch.zeros([1, 64], dtype=torch.bfloat16, device=device)\n"
                      "out = Kernel(x).out?  # a line of the trace: read it before you run it\n"),
            std::string::npos)
      << text;
  EXPECT_NE(run_repro().find("Error"), std::string::npos) << "no such kernel";

  step.json["calls"][0]["invoke"] = "out = torch.zeros([1, 64], torch.bfloat16, device)";
  run({"judge", trace(step), "--repro", path("repro.py")});
  EXPECT_EQ(run_repro().find("out[1, "), 0u);
}

TEST_F(ReproOfACall, IsNotWrittenWithoutAWrongCall) {
  ExampleStep step;
  step.norm();
  const Finished finished = run({"judge", trace(step), "--repro", path("repro.py")});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.err, "plumb: --repro wrote nothing: no call is wrong\n");
  EXPECT_FALSE(std::filesystem::exists(path("repro.py")));
  expect_refused({"judge", path("trace"), "--repro", path("no/where.py")}, "there is no folder");
  expect_refused({"judge", path("trace"), "--against", path("trace"), "--repro", path("r.py")},
                 "--against has no --repro");
}

TEST_F(ReproOfACall, RefusesLargeTensors) {
  constexpr std::int64_t kColumns = 600000;
  ExampleStep step;
  const std::vector<std::uint16_t> ones(kColumns, 0x3f80);
  auto& call = step.norm();
  call["before"] = {{"x", step.tensor("bf16", {1, kColumns}, ones)}};
  call["after"] = {
      {"out", step.tensor("bf16", {1, kColumns}, std::vector<std::uint16_t>(kColumns))}};
  const Finished finished = run({"judge", trace(step), "--repro", path("repro.py")});
  EXPECT_EQ(finished.code, 1) << finished.out;
  EXPECT_EQ(finished.err,
            "plumb: --repro wrote nothing: call 0/0/0: its tensors have 2400000 bytes, more than "
            "1048576\n");
}

}  // namespace repro_test
}  // namespace plumb::tests
