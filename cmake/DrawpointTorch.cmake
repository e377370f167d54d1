# LibTorch as one imported target, drawpoint_libtorch, from the first of: Torch_DIR or CMAKE_PREFIX_PATH; a python3 that
# has torch; the virtual environment .deps/torch that ./run makes. Installed beside the package file, where it does the
# same for a project that uses drawpoint, and last takes the one that drawpoint was built with.
include_guard(DIRECTORY)

# Sets `out` to the folder of TorchConfig.cmake in the torch that `python` sees, if there is one.
function(_drawpoint_torch_of_python python out)
  execute_process(COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
                  OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(folder AND EXISTS "${folder}/share/cmake/Torch/TorchConfig.cmake")
    set(${out} "${folder}/share/cmake/Torch" PARENT_SCOPE)
  endif()
endfunction()

# Sets `out` to the folder of TorchConfig.cmake of the first place that has one. The system's own folders stay out: only
# Debian's libtorch-dev lives there, and it is too old.
function(_drawpoint_torch_dir out)
  set(found "${Torch_DIR}")
  if(NOT found)
    set(found "$ENV{Torch_DIR}")
  endif()
  if(NOT found)
    unset(found)
    find_path(found TorchConfig.cmake PATHS ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH
              PATH_SUFFIXES share/cmake/Torch NO_DEFAULT_PATH NO_CACHE)
  endif()
  if(NOT found)
    find_program(python NAMES python3 NO_CACHE)
    foreach(candidate IN ITEMS "${python}" "${PROJECT_SOURCE_DIR}/.deps/torch/bin/python3")
      if(NOT found AND EXISTS "${candidate}")
        _drawpoint_torch_of_python("${candidate}" found)
      endif()
    endforeach()
  endif()
  if(NOT found AND EXISTS "${_drawpoint_built_with}/TorchConfig.cmake")
    set(found "${_drawpoint_built_with}")
  endif()
  if(NOT found AND DEFINED _drawpoint_built_with)
    message(FATAL_ERROR "LibTorch not found: set Torch_DIR or CMAKE_PREFIX_PATH; drawpoint was built with the one in "
                        "${_drawpoint_built_with}")
  elseif(NOT found)
    message(FATAL_ERROR "LibTorch not found: run ./run setup, or set Torch_DIR or CMAKE_PREFIX_PATH, "
                        "or configure with -DDRAWPOINT_TORCH=OFF")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# A library of another LibTorch in the link line ends in a program that does not link, or aborts at start.
function(_drawpoint_refuse_second_libtorch prefix)
  set(files ${ARGN})
  foreach(target IN ITEMS torch torch_cpu torch_cuda c10 c10_cuda)
    if(TARGET ${target})
      foreach(property IN ITEMS IMPORTED_LOCATION IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_NONE)
        get_target_property(file ${target} ${property})
        if(file)
          list(APPEND files "${file}")
        endif()
      endforeach()
    endif()
  endforeach()
  foreach(file IN LISTS files)
    get_filename_component(real "${file}" REALPATH)
    cmake_path(IS_PREFIX prefix "${real}" NORMALIZE inside)
    if(NOT inside AND file MATCHES "/lib(torch|c10|kineto)[^/]*$")
      message(FATAL_ERROR "two LibTorchs: ${file} would be mixed with ${prefix}. A second one is installed "
                          "(Debian's libtorch-dev?): remove it, or set Torch_DIR to the one to use")
    endif()
  endforeach()
endfunction()

function(_drawpoint_add_libtorch)
  _drawpoint_torch_dir(dir)
  get_filename_component(prefix "${dir}/../../.." REALPATH)
  # The trap: TorchConfig.cmake asks for Caffe2 and c10 by their bare names, so those of Debian's libtorch-dev, a
  # system-wide one, would win over its own. Naming them first prevents that. Kineto is inside libtorch_cpu.
  set(Caffe2_DIR "${prefix}/share/cmake/Caffe2" CACHE PATH "of the LibTorch in use" FORCE)
  foreach(pair IN ITEMS c10_LIBRARY:c10 TORCH_LIBRARY:torch kineto_LIBRARY:torch_cpu)
    string(REGEX MATCH "^(.*):(.*)$" _ ${pair})
    if(EXISTS "${prefix}/lib/lib${CMAKE_MATCH_2}.so")
      set(${CMAKE_MATCH_1} "${prefix}/lib/lib${CMAKE_MATCH_2}.so" CACHE FILEPATH "of the LibTorch in use" FORCE)
    endif()
  endforeach()
  find_library(system_c10 c10 NO_CMAKE_PATH NO_CACHE)
  if(system_c10 AND NOT system_c10 STREQUAL c10_LIBRARY)
    message(NOTICE "-- A second LibTorch is installed (${system_c10}); it stays unused")
  endif()

  find_package(Torch CONFIG REQUIRED GLOBAL PATHS "${dir}" NO_DEFAULT_PATH)

  # The version as the headers say it: not every build has a TorchConfigVersion.cmake.
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT lines AND EXISTS "${prefix}/include/${header}")
      file(STRINGS "${prefix}/include/${header}" lines REGEX "define TORCH_VERSION_M(AJOR|INOR) ")
    endif()
  endforeach()
  string(REGEX REPLACE "[^0-9;]" "" version "${lines}")
  list(JOIN version "." version)
  if(version VERSION_LESS 2.1)
    message(FATAL_ERROR "LibTorch ${version} in ${prefix} is too old: drawpoint needs 2.1 or newer")
  endif()
  if(TORCH_CXX_FLAGS MATCHES "CXX11_ABI=0")
    message(FATAL_ERROR "LibTorch ${version} in ${prefix} has the old C++ ABI, which no other library here has: "
                        "take a build with the C++11 ABI (2.6 and newer from pip)")
  endif()
  _drawpoint_refuse_second_libtorch("${prefix}" ${TORCH_LIBRARIES})
  message(NOTICE "-- LibTorch ${version} in ${prefix}")

  add_library(drawpoint_libtorch INTERFACE IMPORTED GLOBAL)   # imported: its headers are system headers to us
  set_target_properties(drawpoint_libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES}"
    # The released builds have it, and without it some classes (at::RecordFunction) have one member more.
    INTERFACE_COMPILE_DEFINITIONS NDEBUG)
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  set_property(TARGET drawpoint_libtorch PROPERTY INTERFACE_COMPILE_OPTIONS "${flags}")
endfunction()

if(NOT TARGET drawpoint_libtorch)
  _drawpoint_add_libtorch()
  # A file that includes torch/torch.h takes 1.1 GB to compile: two at a time, however many cores there are.
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS drawpoint_torch=2)
endif()

# drawpoint_torch_sources_pool(TARGET): the target's files include LibTorch, so compile at most two of them at once.
function(drawpoint_torch_sources_pool target)
  set_property(TARGET ${target} PROPERTY JOB_POOL_COMPILE drawpoint_torch)
endfunction()
