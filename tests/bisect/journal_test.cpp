// SPDX-License-Identifier: Apache-2.0
//
// A stopped search resumes from its state file. A state file of another question is refused.
#include "bisect/search/journal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "bisect/search/process.h"

namespace plumb::bisect {
namespace journal_test {

using nlohmann::json;

const json kQuestion{{"case", "rms_norm/hidden_1/eager"}, {"good", "a"}};

class JournalFile : public testing::Test {
 protected:
  std::string path(const std::string& name = "state") const { return (folder_.path() / name); }
  std::string text() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  // Writes two answers and a decision.
  void fill() const {
    Journal journal(path(), "bisect commits", kQuestion);
    journal.record("a", {{"verdict", "good"}, {"seconds", 1.5}, {"reason", ""}}, "it is an end");
    journal.note("4 commits are left");
    journal.record("b", {{"verdict", "cannot say"}, {"reason", "no \xff case"}}, "it halves them");
  }
  // The message of the refusal, which must be one line.
  std::string refusal(const std::string& command = "bisect commits",
                      const json& question = kQuestion) const {
    try {
      const Journal journal(path(), command, question);
    } catch (const BadJournal& error) {
      EXPECT_EQ(std::string(error.what()).find(path()), 0u) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return std::string(error.what()).substr(path().size());
    }
    return "not refused";
  }

 private:
  TemporaryFolder folder_{"plumb-journal-test"};
};

std::optional<std::string> member(const Journal& journal, const std::string& key,
                                  const std::string& name) {
  return journal.find(key, [&](const json& answer) { return answer.at(name).get<std::string>(); });
}

TEST_F(JournalFile, AnswersAreThereAgain) {
  fill();
  const Journal journal(path(), "bisect commits", kQuestion);
  EXPECT_EQ(journal.remembered(), 2u);
  EXPECT_FALSE(journal.cut());
  EXPECT_EQ(member(journal, "a", "verdict"), "good");
  EXPECT_EQ(member(journal, "b", "reason"), "no \xef\xbf\xbd case") << "JSON is UTF-8";
  EXPECT_FALSE(journal.has("c"));
  EXPECT_EQ(member(journal, "c", "verdict"), std::nullopt);
}

TEST_F(JournalFile, EveryLineIsThereAtOnce) {
  Journal journal(path(), "bisect commits", kQuestion);
  const std::string header = text();
  EXPECT_EQ(header.back(), '\n');
  journal.note("a decision");
  EXPECT_EQ(text(), header + "{\"note\":\"a decision\"}\n");
}

TEST_F(JournalFile, WithoutAFileAnswersAreRememberedWhileItLives) {
  Journal journal("", "bisect commits", kQuestion);
  journal.record("a", 1, "why");
  EXPECT_TRUE(journal.has("a"));
}

TEST_F(JournalFile, ALastLineThatWasCutOffIsDroppedWhereverItWasCut) {
  fill();
  const std::string whole = text();
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (const std::size_t length : {last + 1, (last + whole.size()) / 2, whole.size() - 1}) {
    write(whole.substr(0, length));
    {
      Journal journal(path(), "bisect commits", kQuestion);
      EXPECT_TRUE(journal.cut()) << length;
      EXPECT_EQ(journal.remembered(), 1u) << length;
      journal.record("b", {{"verdict", "bad"}}, "once more");
    }
    const Journal again(path(), "bisect commits", kQuestion);
    EXPECT_FALSE(again.cut());
    EXPECT_EQ(member(again, "b", "verdict"), "bad");
  }
  write("{\"schema\":1,\"comm");
  const Journal fresh(path(), "bisect commits", kQuestion);
  EXPECT_EQ(fresh.remembered(), 0u);
}

TEST_F(JournalFile, FilesThatAreNotItsOwnAreRefused) {
  fill();
  EXPECT_EQ(refusal("bisect commits", {{"case", "rms_norm/hidden_1/eager"}, {"good", "z"}}),
            ": answers another question: good is \"a\" in the file and \"z\" in this command");
  EXPECT_EQ(refusal("bisect commits", {{"case", "rms_norm/hidden_1/eager"}}),
            ": answers another question: good is \"a\" in the file and missing in this command");
  EXPECT_EQ(refusal("bisect case"), ": is a state file of \"bisect commits\"");
  const std::string whole = text();
  write(whole + "no JSON\n" + whole);
  EXPECT_EQ(refusal(), ":5: is not a line of a state file of plumb bisect");
  write("{\"schema\":1}\n");
  EXPECT_EQ(refusal(), ":1: is not a line of a state file of plumb bisect");
  write("{\"schema\":2,\"command\":\"bisect commits\",\"question\":{}}\n");
  EXPECT_EQ(refusal(), ": has schema 2, this plumb reads 1");
  EXPECT_EQ(whole.substr(0, 10), "{\"command\"");
}

TEST_F(JournalFile, AnAnswerThatIsNotWhatItShouldBeIsRefusedWithItsLine) {
  fill();
  const Journal journal(path(), "bisect commits", kQuestion);
  try {
    member(journal, "a", "no such member");
    FAIL() << "not refused";
  } catch (const BadJournal& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find(path() + ":2: the answer to \"a\" cannot be read ("), std::string::npos)
        << said;
  }
}

TEST_F(JournalFile, TwoSearchesDoNotShareAFile) {
  const Journal journal(path(), "bisect commits", kQuestion);
  EXPECT_EQ(refusal(), ": another plumb bisect is using it");
}

TEST_F(JournalFile, PlacesWhereNoFileCanBeAreRefused) {
  EXPECT_THROW(Journal(path("no/such/folder"), "bisect commits", kQuestion), BadJournal);
  EXPECT_THROW(read_journal(path("absent")), BadJournal);
  EXPECT_THROW(read_journal("/"), BadJournal);
  EXPECT_THROW(read_journal("/dev/zero"), BadJournal) << "it has no end";
  EXPECT_THROW(Journal("/dev/zero", "bisect commits", kQuestion), BadJournal);
}

TEST_F(JournalFile, TheDecisionLogIsInOrder) {
  fill();
  EXPECT_EQ(explain(read_journal(path())),
            "bisect commits of\n"
            "  case = \"rms_norm/hidden_1/eager\"\n"
            "  good = \"a\"\n"
            "  1  a: good (1.5 s)\n"
            "    asked because: it is an end\n"
            "  2  4 commits are left\n"
            "  3  b: cannot say, no \xef\xbf\xbd case\n"
            "    asked because: it halves them\n");
  write("");
  EXPECT_EQ(explain(read_journal(path())), "the state file is empty\n");
}

}  // namespace journal_test
}  // namespace plumb::bisect
