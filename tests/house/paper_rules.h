#pragma once
// The rules about what is beside the code: READMEs, documents, the package list. One sentence a
// violation, as in code_rules.h.
#include <string>
#include <vector>

#include "house/source_text.h"

namespace takt::house {

// Every folder with code that is a room (src/*/*, emulator, bench, the folders of tests that are
// not mirrors of src) has a README.md of at most 15 lines.
std::vector<std::string> rooms_without_short_readme(const Files& files);

// No host of a package registry, and no absolute path of somebody's machine.
std::vector<std::string> traces_of_a_machine(const Files& files);

// Every `make verb` in a document is a verb of the Makefile, every `takt command` one of the
// program's, every scripts/... named is there, and every relative link leads to a file.
std::vector<std::string> broken_documents(const Files& files);

// packages.txt: sections are known, names sorted and once only, each with a reason of one word,
// each with a row in docs/dependencies.md; every find_package, pkg_check_modules and heavy include
// of the build has its package.
std::vector<std::string> wrong_packages(const Files& files);

}  // namespace takt::house
