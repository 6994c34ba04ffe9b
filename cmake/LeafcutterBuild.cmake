# How everything here is compiled: language level, warnings, sanitizers, cache and linker.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug CACHE STRING "" FORCE)
endif()
# Assertions stay on in release builds, so NDEBUG is never defined; -g1 keeps backtraces and halves the objects.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

set(LEAFCUTTER_SANITIZE "" CACHE STRING "address (with undefined), thread, or empty")
if(LEAFCUTTER_SANITIZE STREQUAL "address")
  set(_sanitize -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # What these two cannot see: an empty optional, an index or an iterator past the end within the same allocation.
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
elseif(LEAFCUTTER_SANITIZE STREQUAL "thread")
  set(_sanitize -fsanitize=thread -fno-omit-frame-pointer)
  # Boost.Asio's fences are what this sanitizer cannot follow, and g++ says so (-Werror=tsan). Its event loop has one
  # thread everywhere here, and what other threads post to it is ordered by its mutex.
  add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
elseif(NOT LEAFCUTTER_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LEAFCUTTER_SANITIZE=${LEAFCUTTER_SANITIZE}: expected address, thread or nothing")
endif()
# What ThreadSanitizer's run-time library is told in every test, and through it in the leaves that the test starts.
set(LEAFCUTTER_TEST_ENVIRONMENT "")
if(LEAFCUTTER_SANITIZE STREQUAL "thread")
  # atexit_sleep_ms=0: the library otherwise waits a second in every process that ends with threads, each leaf's
  # included. history_size=4: a report has both stacks more often, and suppressions need them.
  set(LEAFCUTTER_TEST_ENVIRONMENT
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp:halt_on_error=1:atexit_sleep_ms=0:history_size=4")
endif()
# How many times longer than usual a test may take: a sanitized program is two to ten times slower.
set(LEAFCUTTER_TEST_PATIENCE 1)
if(_sanitize)
  add_compile_options(${_sanitize})
  add_link_options(${_sanitize})
  set(LEAFCUTTER_TEST_PATIENCE 5)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # BASEDIR and NOHASHDIR: a clone in another folder finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(LEAFCUTTER_SANITIZE STREQUAL "address")
  # Compiled into every program rather than told by ctest: a test that is run by hand behaves as it does in ctest.
  add_library(leafcutter_sanitizer_defaults OBJECT "${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cpp")
  target_compile_options(leafcutter_sanitizer_defaults PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror -fno-sanitize=all)
  set(_sanitized "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,$<NOT:$<BOOL:$<TARGET_PROPERTY:LEAFCUTTER_SUBJECT>>>")
  link_libraries("$<$<AND:${_sanitized}>:leafcutter_sanitizer_defaults>")
endif()

# A program that is run under faults, in place of a user's service. The sanitizers' libraries make system calls of their
# own (a pipe to probe memory, /proc/self at the end), which would be visits, and be struck: it goes without them.
function(leafcutter_subject target)
  set_target_properties(${target} PROPERTIES LEAFCUTTER_SUBJECT TRUE)
  if(LEAFCUTTER_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
    target_link_options(${target} PRIVATE -fno-sanitize=all)
  endif()
endfunction()

# Four sources are compiled as one where nobody edits them (the release preset): a cold build is mostly headers of CAF,
# Boost and GoogleTest. Off elsewhere: touching one file there recompiles one file.
option(LEAFCUTTER_UNITY "Compile sources in groups of four" OFF)
function(leafcutter_unity target)
  if(LEAFCUTTER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
    # A class that a source keeps to itself is then part of an included file, which g++ takes for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

add_library(leafcutter_flags INTERFACE)
# -Wno-restrict: g++ 12 warns of overlapping copies inside std::string that cannot happen (GCC bug 105329).
target_compile_options(leafcutter_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -Wno-restrict)
target_include_directories(leafcutter_flags INTERFACE "${CMAKE_SOURCE_DIR}")

# leafcutter_room(NAME SOURCES a.cpp ... USES other targets): one static library, leafcutter_NAME.
function(leafcutter_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(leafcutter_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(leafcutter_${name} PUBLIC ${ARG_USES} PRIVATE leafcutter_flags)
  target_include_directories(leafcutter_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  leafcutter_unity(leafcutter_${name})
endfunction()

# leafcutter_test(NAME SOURCES ... USES ...): a GoogleTest binary, test_NAME, one for a room. A case runs as one ctest
# test; its name is ROOM.Suite.Case. With SERIAL nothing runs beside one of them.
function(leafcutter_test name)
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;USES" ${ARGN})
  foreach(needed IN LISTS ARG_USES)
    if(needed MATCHES "^leafcutter_" AND NOT TARGET ${needed})
      return()
    endif()
  endforeach()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  math(EXPR timeout "${ARG_TIMEOUT} * ${LEAFCUTTER_TEST_PATIENCE}")
  add_executable(test_${name} ${ARG_SOURCES})
  leafcutter_unity(test_${name})
  target_link_libraries(test_${name} PRIVATE ${ARG_USES} leafcutter_flags leafcutter_test_support)
  target_compile_definitions(test_${name} PRIVATE LEAFCUTTER_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    LEAFCUTTER_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(test_${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${timeout} RUN_SERIAL ${ARG_SERIAL} ${LEAFCUTTER_TEST_ENVIRONMENT})
endfunction()
