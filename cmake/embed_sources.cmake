# gemm_embed_sources(OUT.cpp FILE...): a C++ file that holds each FILE as a string, for handing to NVRTC by the name it is
# included with ("kernels/..." below src/).
function(gemm_embed_sources output)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${ARGN}" -DROOT=${PROJECT_SOURCE_DIR}/src
            -P ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
    COMMENT "Embedding kernel sources"
    VERBATIM)
endfunction()
