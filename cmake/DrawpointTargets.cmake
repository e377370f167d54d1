# Shared flags as INTERFACE targets, never as global variables; private to the project.
add_library(drawpoint_developer INTERFACE)
if(DRAWPOINT_DEVELOPER)
  target_compile_options(drawpoint_developer INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
                                                       -Wno-missing-field-initializers)   # designated initialisers leave fields out on purpose
  # The sampling profiler walks frame pointers: without them its stacks end in our own code.
  target_compile_options(drawpoint_developer INTERFACE -fno-omit-frame-pointer)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(drawpoint_developer INTERFACE -mno-omit-leaf-frame-pointer)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 reports what is not there: inside libstdc++'s strings and Asio's coroutines, and Asio's fences under TSan. Nor
    # does it know that since C++17 a compare_exchange that fails may be stronger than one that succeeds.
    target_compile_options(drawpoint_developer INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-tsan
                                                         -Wno-invalid-memory-model)
  else()
    # Clang sees libstdc++ 12's std::stable_sort use what libstdc++ itself has deprecated.
    target_compile_options(drawpoint_developer INTERFACE -Wno-deprecated-declarations)
  endif()
endif()
if(DRAWPOINT_SANITIZE)
  target_compile_options(drawpoint_developer INTERFACE -fsanitize=${DRAWPOINT_SANITIZE} -fno-sanitize-recover=all
                                                       -fno-omit-frame-pointer)
  target_link_options(drawpoint_developer INTERFACE -fsanitize=${DRAWPOINT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers GCC 12 inlines a coroutine's operator delete and not the new it belongs to, and takes them for strangers.
    target_compile_options(drawpoint_developer INTERFACE -Wno-mismatched-new-delete)
  endif()
endif()

find_program(DRAWPOINT_CCACHE ccache)
if(DRAWPOINT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DRAWPOINT_CCACHE})
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# drawpoint_room(NAME SOURCES … HEADERS … LINK …): one static library, alias drawpoint::NAME. HEADERS are public
# (paths under include/), and each is compiled alone by the target all_verify_interface_header_sets.
function(drawpoint_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;HEADERS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(drawpoint_${name} STATIC ${ROOM_SOURCES})
  add_library(drawpoint::${name} ALIAS drawpoint_${name})
  set_property(GLOBAL APPEND PROPERTY DRAWPOINT_ROOMS drawpoint_${name})   # what cmake/DrawpointInstall.cmake installs
  set_target_properties(drawpoint_${name} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ${DRAWPOINT_DEVELOPER}
                                                     POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  target_compile_features(drawpoint_${name} PUBLIC cxx_std_20)
  list(TRANSFORM ROOM_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/)
  target_sources(drawpoint_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${ROOM_HEADERS})
  target_include_directories(drawpoint_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(drawpoint_${name} PUBLIC ${ROOM_LINK} PRIVATE $<BUILD_INTERFACE:drawpoint_developer> ${ROOM_PRIVATE_LINK})
endfunction()

# What tests and benchmarks of a developer's build are compiled with: they are compiled far more often than they compute, so
# -Og halves their compile time. What they test keeps its own level, and so does a test that computes for long (OPTIMISED).
set(DRAWPOINT_QUICK_OPTIONS $<$<CONFIG:RelWithDebInfo>:-Og>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Below -O2 too GCC 12 takes a coroutine's operator new and delete for strangers.
  list(APPEND DRAWPOINT_QUICK_OPTIONS -Wno-mismatched-new-delete)
endif()

# drawpoint_test(NAME [OPTIMISED | OWN_OPTIONS] SOURCES … LINK …): one Boost.Test program; each of its files is a ctest test,
# named as its suite. main() and the precompiled header are those of drawpoint_test_main (tests/support), which test programs
# share: they have the same options and definitions, to which a program may only add definitions. One that is OPTIMISED, or
# links what has options of its own (OWN_OPTIONS: LibTorch, whose precompiled header would cost 600 MB), does without it.
function(drawpoint_test name)
  cmake_parse_arguments(TEST "OPTIMISED;OWN_OPTIONS" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE drawpoint_test_main ${TEST_LINK})
  if(NOT TEST_OPTIMISED)
    target_compile_options(${name} PRIVATE ${DRAWPOINT_QUICK_OPTIONS})
  endif()
  if(NOT TEST_OPTIMISED AND NOT TEST_OWN_OPTIONS)
    drawpoint_precompiled_header(${name} REUSE_FROM drawpoint_test_main)
  endif()
  # One ctest entry per test file: BOOST_AUTO_TEST_SUITE(name of the file without _test).
  foreach(source IN LISTS TEST_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    if(stem MATCHES "^(.*)_test$")
      set(suite ${CMAKE_MATCH_1})
      add_test(NAME ${suite} COMMAND ${name} --run_test=${suite} --log_level=message --color_output=no)
    endif()
  endforeach()
endfunction()

# drawpoint_precompiled_header(TARGET …): target_precompile_headers(TARGET …), so that ccache still knows its files.
function(drawpoint_precompiled_header target)
  target_precompile_headers(${target} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(DRAWPOINT_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL DRAWPOINT_CCACHE)
    set(sloppiness pch_defines,time_macros,include_file_mtime,include_file_ctime)
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=${sloppiness};${DRAWPOINT_CCACHE}")
  endif()
endfunction()
