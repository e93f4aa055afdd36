# Tests of the program from a user's point of view, with Python's unittest. Each method is a separate test, so that skipped tests
# are listed by name.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND OR NOT TARGET fovea_cli)
  return()
endif()
file(GLOB system_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/system/*_test.py ${CMAKE_CURRENT_LIST_DIR}/hostile/*_test.py
  ${CMAKE_CURRENT_LIST_DIR}/regressions/*_test.py)
foreach(file IN LISTS system_tests)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(module ${file} NAME_WE)
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(kind ${folder} NAME)
  file(STRINGS ${file} lines REGEX "^class [A-Za-z]+|^    def test_[a-z0-9_]+")
  foreach(line IN LISTS lines)
    if(line MATCHES "^class ([A-Za-z]+)")
      set(class ${CMAKE_MATCH_1})
    elseif(line MATCHES "def (test_[a-z0-9_]+)")
      set(name ${kind}/${module}.${CMAKE_MATCH_1})
      add_test(NAME ${name} COMMAND Python3::Interpreter -m unittest ${module}.${class}.${CMAKE_MATCH_1}
               WORKING_DIRECTORY ${folder})
      set_tests_properties(${name} PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "skipped=1"
        ENVIRONMENT "FOVEA_BIN=$<TARGET_FILE:fovea_cli>;FOVEA_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_CURRENT_LIST_DIR}/system;PYTHONDONTWRITEBYTECODE=1")
    endif()
  endforeach()
endforeach()
