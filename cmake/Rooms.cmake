# takt_room(NAME [LINK targets...]): the library of the folder it is called in. Every .cpp of the
# folder belongs to it, so that adding a file is adding a file. A room without .cpp is headers only.
function(takt_room name)
  cmake_parse_arguments(ROOM "" "" "LINK;PRIVATE_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(sources)
    add_library(takt_${name} STATIC ${sources})
    target_include_directories(takt_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(takt_${name} PUBLIC ${ROOM_LINK} PRIVATE takt_flags ${ROOM_PRIVATE_LINK})
    set_target_properties(takt_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  else()
    add_library(takt_${name} INTERFACE)
    target_include_directories(takt_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(takt_${name} INTERFACE ${ROOM_LINK})
  endif()
endfunction()

# takt_tests(NAME LINK targets... [SOURCES helpers...] [DEPENDS targets...] [TIMEOUT seconds]): one
# test program of the *_test.cpp files of the folder it is called in.
function(takt_tests name)
  cmake_parse_arguments(T "" "TIMEOUT" "LINK;DEPENDS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(${name}_test ${sources} ${T_SOURCES})
  target_link_libraries(${name}_test PRIVATE takt_flags takt_test_support ${T_LINK} GTest::gtest_main GTest::gmock)
  # The code under test is built as users get it; the tests themselves only have to be built soon.
  target_compile_options(${name}_test PRIVATE -O0)
  if(T_DEPENDS)
    add_dependencies(${name}_test ${T_DEPENDS})
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${T_TIMEOUT})
endfunction()
