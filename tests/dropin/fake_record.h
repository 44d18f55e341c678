// The record of calls that a fake library keeps.
#pragma once

#include <string>

namespace gemm::test {

inline std::string& fake_record() {
  static std::string calls;
  return calls;
}

// "cublasSgemm_v2(2,3,4) "
inline void record(const char* name, int m, int n, int k) {
  fake_record() += std::string(name) + "(" + std::to_string(m) + "," + std::to_string(n) + "," + std::to_string(k) + ") ";
}

}  // namespace gemm::test
