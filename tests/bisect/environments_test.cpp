// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect environments, with real compilers and the example's kernel: finds the first bad
// environment, or the toggles that cause a failure. Bad files are refused.
#include "bisect/commits/environments.h"

#include <cstdlib>
#include <stdexcept>

#include "tests/bisect/scripted_repository.h"

namespace plumb::bisect {
namespace environments_test {

class BisectEnvironments : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(PLUMB_EXAMPLES "/kernels.c", folder_.path());
    for (const char* program : {"gcc", "clang"}) {
      if (!run_process({{"/bin/sh", "-c", std::string("command -v ") + program}, "", {}, 0}).ok()) {
        GTEST_SKIP() << "no " << program;
      }
    }
  }
  std::string path(const std::string& name) const { return folder_.path() / name; }

  Bisected run(const std::string& file, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{PLUMB_BINARY,
                                   "bisect",
                                   "environments",
                                   "--env",
                                   file,
                                   "--case",
                                   "rms_norm/one_token/eager",
                                   "--platform",
                                   "sim-sm90",
                                   "--json",
                                   path("result.json"),
                                   "--state",
                                   path("state")};
    words.insert(words.end(), more.begin(), more.end());
    Bisected bisected{run_process({words, "", {"PLUMB_INCLUDE=" PLUMB_HEADERS}, 0}), {}};
    if (std::filesystem::exists(path("result.json"))) {
      bisected.report = nlohmann::json::parse(file_text(path("result.json")));
    }
    return bisected;
  }
  std::string example(const std::string& name) const {
    std::filesystem::copy(std::string(PLUMB_EXAMPLES "/") + name, folder_.path());
    return path(name);
  }
  std::string write(const std::string& text) const {
    std::ofstream(path("env.toml")) << text;
    return path("env.toml");
  }

  TemporaryFolder folder_{"plumb-environments-test"};
};

TEST_F(BisectEnvironments, FindsThatFastMathBreaksASensitiveKernel) {
  const Bisected found = run(example("environments.toml"));
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  EXPECT_EQ(found.report["first_bad"], "gcc -O2, fast math");
  for (const char* text :
       {"first bad environment: gcc -O2, fast math\n",
        "rms_norm/one_token/eager on sim-sm90\n    out: ", "export CC=gcc && ", "-ffast-math",
        " && plumb run --case rms_norm/one_token/eager --platform sim-sm90 "
        "--plugin kernels.so"}) {
    EXPECT_NE(found.ended.out.find(text), std::string::npos) << text << "\n" << found.ended.out;
  }
  EXPECT_LE(found.report["builds"].get<int>(), 4) << "14 environments";
}

TEST_F(BisectEnvironments, FindsBothOfTwoCulpritsAmongEightToggles) {
  const Bisected found = run(example("toggles.toml"));
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  ASSERT_EQ(found.report["culprits"].size(), 2u) << found.ended.out;
  EXPECT_EQ(found.report["culprits"][0]["toggles"], nlohmann::json({"fast math"}));
  EXPECT_EQ(found.report["culprits"][1]["toggles"], nlohmann::json({"fast path"}));
  EXPECT_EQ(found.report["others_together"], "good");
  EXPECT_NE(found.ended.out.find("culprit: fast math (alone makes it fail)"), std::string::npos);
  EXPECT_NE(found.ended.out.find("all others together pass: clang + -O3 + contraction"),
            std::string::npos)
      << found.ended.out;
  const Bisected again = run(path("toggles.toml"));
  EXPECT_EQ(again.report["builds"], found.report["builds"]);
  EXPECT_NE(again.ended.err.find("fast math: bad (remembered)"), std::string::npos)
      << again.ended.err;
}

// A script in place of plumb, whose verdict depends on environment variables only: needs no
// compiler.
std::string script() {
  return R"(#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --json ] && json=$2; shift; done
head='"case":"rms_norm/one_token/eager","platform":"sim-sm90"'
if eval "$TEST_FAILS"; then
  echo '{"cases":[{'"$head"',"outcome":"failed","points":1,"launches":2,"comparisons":1,"failures":[{"context":"step 0","lines":["out: 1 of 1 rows (row 0) wrong"],"tensors":[{"tensor":"out"}]}]}]}' >"$json"
  exit 1
fi
echo '{"cases":[{'"$head"',"outcome":"passed","points":4,"launches":8,"comparisons":4}]}' >"$json"
)";
}

class BisectVariables : public BisectEnvironments {
 protected:
  void SetUp() override {
    std::ofstream(path("plumb")) << script();
    std::filesystem::permissions(path("plumb"), std::filesystem::perms::owner_all);
  }
  // Writes a file with the toggles a to d, which set a variable of that name to 1. `fails`: a shell
  // condition under which the case fails.
  std::string toggles(const std::string& fails) const {
    std::string text = "plumb = \"plumb\"\nvariables = { TEST_FAILS = '" + fails + "' }\n";
    for (const char* name : {"a", "b", "c", "d"}) {
      text += std::string("[[toggle]]\nname = \"") + name + "\"\nvariables = { " + name +
              " = \"1\" }\n";
    }
    return write(text);
  }
  std::string list(const std::string& fails) const {
    std::string text = "plumb = \"plumb\"\n";
    for (int i = 0; i < 8; ++i) {
      text += "[[environment]]\nname = \"driver " + std::to_string(i) +
              "\"\nvariables = { TEST_FAILS = '" + fails + "', i = \"" + std::to_string(i) +
              "\" }\n";
    }
    return write(text);
  }
  const std::vector<std::string> once_{"--repeat", "1"};
};

TEST_F(BisectVariables, TwoThatFailOnlyTogetherAreAnInteraction) {
  const Bisected found = run(toggles("[ \"$b$d\" = 11 ]"), once_);
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  ASSERT_EQ(found.report["culprits"].size(), 1u) << found.ended.out;
  EXPECT_EQ(found.report["culprits"][0]["toggles"], (nlohmann::json{"b", "d"}));
  EXPECT_NE(found.ended.out.find("culprit: b + d (only together)"), std::string::npos);
}

TEST_F(BisectVariables, ThereMayBeNothingToFind) {
  Bisected found = run(toggles("false"), {"--repeat", "1", "--state", path("1")});
  EXPECT_EQ(found.ended.code, 2) << "--state is there twice";
  found = run(toggles("false"), once_);
  EXPECT_EQ(found.ended.code, 1);
  EXPECT_NE(found.ended.err.find("plumb: with all toggles on the case passes"), std::string::npos);
  std::filesystem::remove(path("state"));
  found = run(toggles("true"), once_);
  EXPECT_EQ(found.ended.code, 1);
  EXPECT_NE(found.ended.err.find("with all toggles off the case fails too: rms_norm/one_token"),
            std::string::npos)
      << found.ended.err;
}

TEST_F(BisectVariables, AllTellsWhenAListIsNotMonotone) {
  const Bisected found = run(list("[ $i -ge 5 ]"), once_);
  EXPECT_EQ(found.report["first_bad"], "driver 5") << found.ended.err;
  std::filesystem::remove(path("state"));
  const std::string mixed = list("[ $i = 2 -o $i = 7 ]");
  const Bisected all = run(mixed, {"--repeat", "1", "--all"});
  EXPECT_EQ(all.ended.code, 0) << all.ended.err;
  EXPECT_EQ(all.report["monotone"], false);
  EXPECT_NE(all.ended.out.find("bad        driver 2: out: wrong values\ngood       driver 3\n"),
            std::string::npos)
      << all.ended.out;
  EXPECT_NE(all.ended.out.find("not monotone"), std::string::npos);
  std::filesystem::remove(path("state"));
  const Bisected steady = run(list("[ $i -ge 5 ]"), {"--repeat", "1", "--all"});
  EXPECT_EQ(steady.report["monotone"], true);
}

TEST_F(BisectVariables, AnEnvironmentThatDoesNotBuildCannotSay) {
  std::filesystem::rename(path("plumb"), path("plumb.in"));
  std::string text = file_text(list("[ $i -ge 5 ]"));
  text.insert(
      text.find("[[environment]]"),
      "build = \"[ $i != 4 ] && cp plumb.in plumb || { echo error: no driver; exit 1; }\"\n");
  const Bisected found = run(write(text), once_);
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  EXPECT_EQ(found.report["candidates"], (nlohmann::json{"driver 4", "driver 5"}));
  EXPECT_NE(found.ended.out.find("    driver 4: cannot say, does not build: error: no driver\n"
                                 "    driver 5: bad\n"),
            std::string::npos)
      << found.ended.out;
}

TEST_F(BisectVariables, AllTriesEachToggleAlone) {
  const Bisected found = run(toggles("[ \"$b$d\" = 1 ]"), {"--repeat", "1", "--all"});
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  EXPECT_EQ(found.ended.out,
            "good       all toggles\ngood       no toggle\ngood       a\nbad        b: out: wrong "
            "values\ngood       c\nbad        d: out: wrong values\n");
}

TEST_F(BisectVariables, AFileThatChangedIsAnotherQuestion) {
  EXPECT_EQ(run(list("[ $i -ge 5 ]"), once_).ended.code, 0);
  const Bisected other = run(list("[ $i -ge 6 ]"), once_);
  EXPECT_EQ(other.ended.code, 2);
  EXPECT_NE(other.ended.err.find("answers another question: environments "), std::string::npos)
      << other.ended.err;
}

std::string refusal(const std::string& text) {
  try {
    parse_environments(text, "env.toml");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

TEST(EnvironmentFiles, MistakesAreNamedWithTheirLine) {
  const std::string one = "[[environment]]\nname = \"a\"\n", two = one + "[[environment]]\n";
  EXPECT_EQ(refusal(one + "[[environment]]\nname = \"b\"\n"), "not refused");
  EXPECT_EQ(refusal("[[environment]\n").find("env.toml:1: "), 0u);
  EXPECT_EQ(refusal(""), "env.toml:1: needs either [[environment]] tables or [[toggle]] tables");
  EXPECT_EQ(refusal(one + "[[toggle]]\nname = \"t\"\n").find("env.toml:1: needs either"), 0u);
  EXPECT_EQ(refusal(one), "env.toml:1: needs at least two [[environment]] tables");
  EXPECT_EQ(refusal(two), "env.toml:3: has no name");
  EXPECT_EQ(refusal(two + "name = \"a\"\n"), "env.toml:3: a is there twice");
  EXPECT_EQ(refusal(two + "nam = \"b\"\n"), "env.toml:4: unknown \"nam\" (did you mean name?)");
  EXPECT_EQ(refusal(two + "name = 3\n"), "env.toml:4: name must be a string");
  EXPECT_EQ(refusal(two + "variables = 3\n"),
            "env.toml:4: variables is a table: { NAME = \"value\" }");
  EXPECT_EQ(refusal(two + "variables = { A = 3 }\n"), "env.toml:4: A must be a string");
  EXPECT_EQ(refusal(two + "variables = { \"A=\" = \"3\" }\n"),
            "env.toml:4: \"A=\" is not the name of a variable");
  EXPECT_EQ(refusal("[environment]\nname = \"a\"\n"),
            "env.toml:1: write it with two brackets, as [[environment]]");
  EXPECT_EQ(refusal("bild = \"make\"\n"), "env.toml:1: unknown \"bild\" (did you mean build?)");
  EXPECT_EQ(refusal("build = \"make\"\n" + two + "name = \"b\"\n"),
            "env.toml:1: a: plugin or plumb: names no file");
  EXPECT_NE(refusal("build = \"make\"\nplugin = \"/a.so\"\n" + two + "name = \"b\"\n")
                .find("/a.so is outside"),
            std::string::npos);
}

TEST(EnvironmentFiles, TogglesThatSwitchNothingAreRefused) {
  const std::string head = "build = \"make {flags}\"\nplugin = \"k.so\"\n";
  EXPECT_EQ(refusal(head + "[[toggle]]\nname = \"a\"\nflags = \"-O3\"\n"), "not refused");
  EXPECT_EQ(refusal(head + "[[toggle]]\nname = \"a\"\n"),
            "env.toml:3: a: switches nothing: no flags, no variables");
  EXPECT_EQ(refusal(head + "[[toggle]]\nname = \"a\"\nbuild = \"x\"\n"),
            "env.toml:3: a: a toggle has flags and variables only");
  EXPECT_NE(
      refusal("build = \"make\"\nplugin = \"k.so\"\n[[toggle]]\nname = \"a\"\nflags = \"-O3\"\n")
          .find("toggles have flags, but build has no {flags}"),
      std::string::npos);
  EXPECT_EQ(refusal(head + "[[toggle]]\nname = \"a + b\"\nflags = \"x\"\n"),
            "env.toml:3: a + b: \" + \" joins the names of toggles");
}

TEST(EnvironmentFiles, PlaceholdersAreFilledIn) {
  const EnvironmentFile file = parse_environments(
      "build = \"make {flags} O={name}\"\nplugin = \"{name}/k.so\"\nflags = "
      "\"-g\"\n[[toggle]]\nname = "
      "\"fast math\"\nflags = \"-ffast-math\"\n[[toggle]]\nname = \"x\"\nvariables = { A = \"1\" "
      "}\n",
      "some/env.toml");
  const Subject both = subject_of(file, combine(file, {0, 1}));
  EXPECT_EQ(both.build, "make -g -ffast-math O=fast_math_+_x");
  EXPECT_EQ(both.artefact, "fast_math_+_x/k.so");
  EXPECT_EQ(both.variables, (std::vector<std::string>{"A=1"}));
  EXPECT_TRUE(both.folder.ends_with("/some")) << both.folder;
  EXPECT_EQ(subject_of(file, combine(file, {})).build, "make -g O=no_toggle");
}

}  // namespace environments_test
}  // namespace plumb::bisect
