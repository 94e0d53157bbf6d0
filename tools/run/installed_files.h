// SPDX-License-Identifier: Apache-2.0
//
// Where this plumb has its files: an installed one beside its program, one in a build folder in its
// source tree.
#pragma once

#include <string>

namespace plumb::tools {

// The folder share/plumb beside the program's own folder, "" if there is none.
std::string installed_files();

// The commit that this program was built from, with "+" behind it if tracked files other than
// goldens differed from it, or "unknown". An installed plumb does not ask git: the checkout that it
// was built from may have moved on, or may be gone.
std::string own_commit();

}  // namespace plumb::tools
