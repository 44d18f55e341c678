// A bundle: a table and the compiled kernels that dispatch may ask for with it, in one file. A machine that loads it needs
// no compiler and no warm-up. Wherever a table can be named, a bundle can be too.
//
//   gemm bundle 1                    the format's version
//   <64 hexadecimal digits>          SHA-256 of everything after this line
//   <header bytes> <payload bytes>
//   {                                the header, JSON with one line for each kernel:
//     "gemm_version": "0.1.0", "nvrtc": "13.0",
//     "kernel_sources": "<digest>",  of the sources that the kernels were compiled from (kernel_sources_digest)
//     "compute_capability": 90, "arch": "sm_90a", "device": "NVIDIA H200",
//     "table_bytes": 113000,         the payload begins with the table, as JSON
//     "kernels": [
//       {"name": "tile_…", "key": "<digest>", "offset": 113000, "bytes": 40960}, …    offset: in the payload
//   ]}
//   <payload>                        the table's text, then the images (cubin, ELF), one after the other
//
// `head -c 4000 FILE` shows what is in it, and `dd` or three lines of Python take it apart: text where people read, and no
// archive library to depend on. One checksum over everything, because a file that was changed anywhere is not to be
// trusted anywhere.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/table.h"
#include "kernels/cubin_store.h"

namespace gemm {

// What a file that gemm_load_table takes holds.
struct LoadedTable {
  Table table;
  std::shared_ptr<const CubinStore> kernels;  // of a bundle; null for a plain table
  int kernels_compute_capability = 0;         // that a bundle's kernels run on
};

// One kernel for a bundle.
struct BundledKernel {
  std::string name, key;
  Cubin cubin;
};

// Whether a file that begins so is a bundle, of whatever version.
bool is_bundle(std::string_view beginning);

// The bytes of a bundle. `kernels` is not empty, and all are machine code for the table's GPU.
std::string write_bundle(const Table& table, const std::vector<BundledKernel>& kernels, const std::string& gemm_version,
                         const std::string& nvrtc_version);

// Failure: it is of another version, damaged, or from other kernel sources than this library's. *warnings gets what is wrong
// with single entries of the table.
Result<LoadedTable> read_bundle(std::string content, std::vector<std::string>* warnings);

// Reads a table or a bundle. Failure: why not, with the path.
Result<LoadedTable> load_table_or_bundle(const std::string& path, std::vector<std::string>* warnings);

// The same for a device: fails also where the table, or a bundle's kernels, are for another kind of GPU.
Result<LoadedTable> load_for_device(const std::string& path, const DeviceInfo& device, std::vector<std::string>* warnings);

}  // namespace gemm
