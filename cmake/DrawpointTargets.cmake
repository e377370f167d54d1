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
    # GCC 12 reports what is not there: inside libstdc++'s strings and Asio's coroutines, and Asio's fences under TSan.
    target_compile_options(drawpoint_developer INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-tsan)
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

# drawpoint_test(NAME SOURCES … LINK …): one Boost.Test program; each of its cases is a ctest test of its own name's suite.
function(drawpoint_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/support/main.cpp ${TEST_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK DRAWPOINT_TEST_DIR="${PROJECT_SOURCE_DIR}/tests")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE drawpoint_developer Boost::unit_test_framework ${TEST_LINK})
  # One ctest entry per test file: BOOST_AUTO_TEST_SUITE(name of the file without _test).
  foreach(source IN LISTS TEST_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    if(stem MATCHES "^(.*)_test$")
      set(suite ${CMAKE_MATCH_1})
      add_test(NAME ${suite} COMMAND ${name} --run_test=${suite} --log_level=message --color_output=no)
    endif()
  endforeach()
endfunction()
