// A libcublasLt that multiplies nothing but knows what is in the test's descriptors.
#include <cstring>

#include "fake.h"
#include "fake_record.h"

using gemm::test::FakeAttributes;

extern "C" {

int cublasLtMatmulDescGetAttribute(const FakeAttributes* attributes, int attribute, void* value, size_t size,
                                   size_t* written) {
  const auto found = attributes->find(attribute);
  if (found == attributes->end()) return 7;
  std::memcpy(value, &found->second, size);
  *written = size;
  return 0;
}

int cublasLtMatrixLayoutGetAttribute(const FakeAttributes* attributes, int attribute, void* value, size_t size,
                                     size_t* written) {
  return cublasLtMatmulDescGetAttribute(attributes, attribute, value, size, written);
}

int cublasLtMatmul(void*) {
  gemm::test::fake_record() += "cublasLtMatmul ";
  return 0;
}

const char* fake_cublaslt_calls() {
  static std::string asked;
  asked = gemm::test::fake_record();
  gemm::test::fake_record().clear();
  return asked.c_str();
}
}
