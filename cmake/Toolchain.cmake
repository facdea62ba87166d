# Compiler flags, linker and compiler cache that every target shares.
add_library(takt_flags INTERFACE)
target_compile_options(takt_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Wswitch-enum -Werror)
# Two warnings of g++ 12 that are false on plain text code at -O2: the text inside an empty
# std::optional<std::string> taken for used, and assigning a short literal to a std::string taken for
# an overlap. The sanitizers look for the real things.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (TAKT_SANITIZED OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug"))
  target_compile_options(takt_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()

find_program(TAKT_MOLD mold)
if(TAKT_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  add_link_options(-fuse-ld=mold)
endif()

# A clone in another folder hits the same cache: paths are made relative to the source folder and
# the build folder is kept out of the hash.
find_program(TAKT_CCACHE ccache)
if(TAKT_CCACHE)
  set(TAKT_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=time_macros ${TAKT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TAKT_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${TAKT_LAUNCHER})
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
endif()
