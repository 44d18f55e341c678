// Names of kernels: the human-readable id of a configuration, and the source that is compiled for a kernel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel_config.h"
#include "kernels/result.h"

namespace gemm {

// One __global__ function to compile: `function(args)` of an embedded source file, wrapped in an entry point.
// The emulator finds its host instance by `function`.
struct KernelSpec {
  std::string name;       // for people, logs and file names: letters, digits and '_'
  std::string header;     // embedded source that defines `function`, e.g. "tile.cuh"
  std::string function;   // C++ expression of a device function that takes one args struct
  std::string args_type;  // that struct, from kernel_args.h
  int threads = 256;      // of __launch_bounds__
  int min_blocks = 1;
};

// The entry point's name in every compiled module.
inline constexpr const char* kEntryName = "gemm_entry";

// The translation unit for `spec`; NVRTC's headers for it are embedded_sources().
std::string source_of(const KernelSpec& spec);

// A file of src/kernels that is handed to NVRTC, by the name it is included with.
struct EmbeddedSource {
  const char* name;
  const char* text;
};
const std::vector<EmbeddedSource>& embedded_sources();

KernelSpec variant_spec(const KernelVariant& variant);
KernelSpec reduce_spec();
KernelSpec reduce_indirect_spec();
KernelSpec reduce_with_spec(Epilogue epilogue);  // also where operands are indirect
KernelSpec relayout_spec();
KernelSpec scale_spec();
KernelSpec scale_indirect_spec();
KernelSpec scale_with_spec(Epilogue epilogue);  // the same
KernelSpec reference_spec();
KernelSpec compare_spec();
KernelSpec guard_spec();
KernelSpec fill_spec();

// "tile_128x128x16_w64x32_t8x8x1_s3_k1_b1_async_transpose_rows_plain": unique per configuration.
std::string config_id(const KernelConfig& config);
std::optional<KernelConfig> config_from_id(const std::string& id);

const char* to_string(Family family);
const char* to_string(LoadPath load);
const char* to_string(FmaOrder order);
const char* to_string(AccInit init);
const char* to_string(Epilogue epilogue);
bool from_string(const std::string& text, Family& family);
bool from_string(const std::string& text, LoadPath& load);
bool from_string(const std::string& text, FmaOrder& order);
bool from_string(const std::string& text, AccInit& init);

}  // namespace gemm
