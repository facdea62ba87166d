#pragma once
// The child that becomes the job: waits to be released, takes the user's identity, opens the output
// files, and executes the program. Whatever fails is reported as a sentence.
#include "edge/launch/shim/spec.h"

namespace takt::shim {

struct Sentence {
  char text[message_bytes_max] = "";
};

// What the child reports when it is in its cgroups.
inline constexpr char joined_word[] = "+";

// Opens `path` as open_handed_output does when it is below the order's logs_dir. -2: it is not; -1
// and a sentence: it cannot be opened.
int open_log(const Spec& spec, const char* path, Sentence& why);

// Runs in the forked child and never returns. Outputs below logs_dir are its descriptors 1 and 2
// already. Joins the cgroups, but for `joined` (null: none), and
// reports that; then waits. `release_fd`: a byte says go; its end says that the
// shim is gone and the job must not run. `report_fd` (close-on-exec): gets the sentence on failure.
[[noreturn]] void become_job(const Spec& spec, const char* joined, int release_fd, int report_fd);

// Opens an output file for appending, making it if need be, with the rights of the calling process.
// A symbolic link is followed only where it belongs to `uid` or root. -1 and a sentence in `why`.
int open_output(const char* path, uid_t uid, Sentence& why);
// The same below the server's own folder `logs_dir`, where no link is followed at all; the file is
// handed to `owner`.
int open_handed_output(const char* path, const char* logs_dir, uid_t owner, Sentence& why);
// Why execve of `program` said `error`; `named` is what the user wrote.
void explain_exec(const char* named, const char* program, int error, const Spec& spec,
                  Sentence& why);

}  // namespace takt::shim
