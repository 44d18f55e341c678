// What the environment says about the drop-in, read once.
#pragma once

namespace gemm::dropin {

struct Settings {
  bool off = false;           // GEMM_DROPIN=off: everything is forwarded
  bool report = false;        // GEMM_DROPIN_REPORT: one line at exit
  bool reduced_math = false;  // NVIDIA_TF32_OVERRIDE or CUBLAS_EMULATE_SINGLE_PRECISION asks for less than FP32 everywhere
};

Settings read_settings();
const Settings& settings();

}  // namespace gemm::dropin
