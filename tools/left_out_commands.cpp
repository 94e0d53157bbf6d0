// SPDX-License-Identifier: Apache-2.0
//
// Replaces plumb bench and plumb bisect in a build with PLUMB_SEARCHES off.
#include "tools/bisect/bisect_arguments.h"
#include "tools/commands.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

[[noreturn]] void refuse() {
  throw NotInThisBuild("this plumb was built without bench and bisect (PLUMB_SEARCHES=OFF)");
}

}  // namespace

int bench_command(const BenchArguments&) { refuse(); }
int bisect_case_command(const BisectCaseArguments&) { refuse(); }
int bisect_commits_command(const BisectCommitsArguments&) { refuse(); }
int bisect_environments_command(const BisectEnvironmentsArguments&) { refuse(); }
int bisect_ops_command(const BisectOpsArguments&) { refuse(); }
int bisect_explain_command(const std::string&) { refuse(); }

}  // namespace plumb::tools
