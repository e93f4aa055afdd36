# Tests of the Python package. Each method is a separate test, so that skipped tests are listed by name: those of a package that is not
# built.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND OR NOT TARGET fovea_cli)
  return()
endif()
file(GLOB python_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/python/*_test.py)
foreach(file IN LISTS python_tests)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(module ${file} NAME_WE)
  file(STRINGS ${file} lines REGEX "^class [A-Za-z]+|^    def test_[a-z0-9_]+")
  foreach(line IN LISTS lines)
    if(line MATCHES "^class ([A-Za-z]+)")
      set(class ${CMAKE_MATCH_1})
    elseif(line MATCHES "def (test_[a-z0-9_]+)")
      set(name python/${module}.${CMAKE_MATCH_1})
      add_test(NAME ${name} COMMAND Python3::Interpreter launch.py ${module}.${class}.${CMAKE_MATCH_1}
               WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/python)
      set_tests_properties(${name} PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "skipped=1"
        ENVIRONMENT "FOVEA_BIN=$<TARGET_FILE:fovea_cli>;FOVEA_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
    endif()
  endforeach()
endforeach()
