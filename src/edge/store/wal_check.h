#pragma once
// Reads SQLite's write-ahead log and tells whether something in its middle is damaged, before
// SQLite itself opens the file and cuts the log off there without a word.
// Format: https://www.sqlite.org/fileformat.html, "The Write-Ahead Log".
//
// What counts: a frame beyond the readable part that continues, by its checksum, a frame that ends
// a commit. SQLite begins a commit behind another only when that other one was on disk; so it was
// acknowledged, and it cannot be read any more. What does not: frames of a commit that never ended
// (a crash), of one that was refused (a full disk), and of an earlier round of the log.
// Damage in the last commit alone cannot be told from a crash here: tail_note.h knows that one.
// Internal to the room.
#include <optional>
#include <string>

namespace takt::store {

// nullopt: nothing is wrong, or there is no log. Else what is wrong, as a clause.
std::optional<std::string> damage_in_wal(const std::string& wal_path);

}  // namespace takt::store
