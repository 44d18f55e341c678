# Warnings and sanitizers of our own targets, as one interface target.
add_library(gemm_options INTERFACE)
target_include_directories(gemm_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(gemm_options INTERFACE -Wall -Wextra -Wpedantic)
# GCC 12 reports overlapping copies inside std::string's operator+ that cannot happen (GCC bug 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(gemm_options INTERFACE -Wno-restrict)
endif()
if(GEMM_WARNINGS_AS_ERRORS)
  target_compile_options(gemm_options INTERFACE -Werror)
endif()
if(GEMM_SANITIZE STREQUAL "address")
  # "undefined" leaves out numbers that an integer cannot hold, such as products of sizes near 2^63.
  set(checks undefined,float-cast-overflow)
  # An access through a null pointer or beyond an object AddressSanitizer reports itself. Without these two checks kernels
  # compile in about four fifths of the time.
  target_compile_options(gemm_options INTERFACE -fsanitize=address,${checks} -fno-sanitize=null,object-size
                                                -fno-sanitize-recover=${checks} -fno-omit-frame-pointer)
  target_link_options(gemm_options INTERFACE -fsanitize=address,${checks})
elseif(GEMM_SANITIZE STREQUAL "thread")
  target_compile_options(gemm_options INTERFACE -fsanitize=thread)
  target_link_options(gemm_options INTERFACE -fsanitize=thread)
elseif(GEMM_SANITIZE)
  message(FATAL_ERROR "GEMM_SANITIZE is '${GEMM_SANITIZE}'; it must be empty, 'address' or 'thread'")
endif()
