# Imported targets CAF::core and CAF::io for distribution packages that ship CAF 0.17 without a CMake package
# (Debian 12: libcaf-dev). Sets CAF_VERSION from the installed header, so that EXACT can be asked for.
find_path(CAF_INCLUDE_DIR NAMES caf/config.hpp)
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" _caf_number "${_caf_line}")
  math(EXPR _caf_major "${_caf_number} / 10000")
  math(EXPR _caf_minor "(${_caf_number} / 100) % 100")
  math(EXPR _caf_patch "${_caf_number} % 100")
  set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
endif()

foreach(_component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${_component}_LIBRARY NAMES caf_${_component})
  if(CAF_${_component}_LIBRARY)
    set(CAF_${_component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_core_LIBRARY CAF_INCLUDE_DIR
  VERSION_VAR CAF_VERSION HANDLE_COMPONENTS)

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(_component IN LISTS CAF_FIND_COMPONENTS)
    if(NOT TARGET CAF::${_component})
      add_library(CAF::${_component} SHARED IMPORTED)
      set_target_properties(CAF::${_component} PROPERTIES IMPORTED_LOCATION "${CAF_${_component}_LIBRARY}")
      target_include_directories(CAF::${_component} SYSTEM INTERFACE "${CAF_INCLUDE_DIR}")
    endif()
  endforeach()
  target_link_libraries(CAF::core INTERFACE Threads::Threads)
  # "This type was never registered" becomes a compile error instead of a message that is lost at run time.
  target_compile_definitions(CAF::core INTERFACE CAF_ENABLE_TYPE_ID_CHECKS)
  if(TARGET CAF::io)
    target_link_libraries(CAF::io INTERFACE CAF::core)
  endif()
endif()
