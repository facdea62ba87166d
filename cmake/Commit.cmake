# takt_commit.h names the commit that is built, so that a failure of the simulator can be played
# again. It is written anew when HEAD moves; without a repository the commit is "unknown".
find_program(TAKT_GIT git)
set(commit_watched "")
if(TAKT_GIT)
  execute_process(COMMAND ${TAKT_GIT} rev-parse --absolute-git-dir WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    OUTPUT_VARIABLE git_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  foreach(file logs/HEAD HEAD)
    if(git_dir AND EXISTS ${git_dir}/${file})
      list(APPEND commit_watched ${git_dir}/${file})
    endif()
  endforeach()
endif()
set(commit_header ${CMAKE_BINARY_DIR}/generated/takt_commit.h)
add_custom_command(OUTPUT ${commit_header}
  COMMAND ${CMAKE_COMMAND} -D GIT=${TAKT_GIT} -D SOURCE=${CMAKE_SOURCE_DIR} -D HEADER=${commit_header}
    -P ${CMAKE_SOURCE_DIR}/cmake/write_commit.cmake
  DEPENDS ${commit_watched} ${CMAKE_SOURCE_DIR}/cmake/write_commit.cmake VERBATIM)
add_custom_target(takt_commit DEPENDS ${commit_header})
