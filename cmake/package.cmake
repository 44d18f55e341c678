# cpack -G DEB: two packages, gemm (libdispatch with its headers, CMake and pkg-config files, and tables) and gemm-tools.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gemm)
set(CPACK_PACKAGE_VENDOR gemm)
# The project has no address of its own to give; whoever hands packages on puts theirs here.
set(GEMM_PACKAGE_CONTACT "the gemm project" CACHE STRING "Maintainer that packages name, such as 'A Name <address>'")
set(CPACK_PACKAGE_CONTACT "${GEMM_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL dispatch)
if(GEMM_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# Names the C and C++ libraries. cuBLAS and NVRTC are opened on first need, so nothing here depends on them.
find_program(GEMM_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(GEMM_DPKG_SHLIBDEPS)
if(GEMM_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libgcc-s1")
endif()

set(CPACK_DEBIAN_DISPATCH_PACKAGE_NAME gemm)
set(CPACK_COMPONENT_DISPATCH_DESCRIPTION
    "SGEMM tuned for NVIDIA GPUs: library\nServes each single-precision matrix product with the kernel that suits its shape.\nCompiles kernels with NVRTC unless a bundle brings them, and uses cuBLAS where that\nis faster; neither has to be installed.")
set(CPACK_DEBIAN_DISPATCH_PACKAGE_SUGGESTS "cuda-nvrtc-13-0, libcublas-13-0, gemm-tools")
# Debian's port of Apple's library has the same files.
if(GEMM_LIBRARY_NAME STREQUAL "dispatch")
  set(CPACK_DEBIAN_DISPATCH_PACKAGE_CONFLICTS "libdispatch0, libdispatch-dev")
endif()

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME gemm-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "gemm (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "SGEMM tuned for NVIDIA GPUs: programs\ngemm-tune makes tables and bundles, gemm-bench measures, gemm-inspect explains.")

include(CPack)
