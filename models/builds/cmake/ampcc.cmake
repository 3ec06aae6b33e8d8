# ampcc_program(NAME MODEL [OPTION...]): the program NAME is compiled from MODEL by ampcc.
# Options name files by whole paths, since ampcc runs in the build folder. Needs CMake 3.20.
find_program(AMPCC ampcc REQUIRED)

function(ampcc_program name model)
  cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  add_custom_command(
    OUTPUT "${program}"
    COMMAND "${AMPCC}" "${model}" -q -o "${program}" -MF "${program}.d" ${ARGN}
    DEPENDS "${AMPCC}" "${model}"
    DEPFILE "${program}.d"
    COMMENT "Compiling ${name} with ampcc"
    VERBATIM)
  add_custom_target("${name}_program" ALL DEPENDS "${program}")
endfunction()
