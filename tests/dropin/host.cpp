// host local|global LIBRARY: opens the client as an interpreter opens its modules, and runs it.
// host bare: calls cublasSgemm_v2 in a process without any cuBLAS.
#include <dlfcn.h>

#include <cstdio>
#include <string>

namespace {

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

int run_bare() {
  auto* const sgemm = symbol<int(void*, int, int, int, int, int)>(RTLD_DEFAULT, "cublasSgemm_v2");
  if (!sgemm) return 2;
  std::printf("statuses %d", sgemm(nullptr, 0, 0, 1, 1, 1));
  std::printf(" %d\n", sgemm(nullptr, 0, 0, 1, 1, 1));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "bare") return run_bare();
  if (argc < 3) return 2;
  void* client = dlopen(argv[2], RTLD_NOW | (how == "global" ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!client) return std::printf("%s\n", dlerror()), 2;
  auto* const run = symbol<void()>(client, "run_client");
  if (!run) return 2;
  run();
  return 0;
}
