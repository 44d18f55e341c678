#!/usr/bin/env bash
# Proves the drop-in with real clients of cuBLAS: runs each as it is and with libdispatch_cublas.so preloaded, compares results
# and times, and counts what was served. A client whose package is missing is left out, and said so.
#
#   tests/gpu/clients/run_clients.sh [LIBRARY [CSV]]
#
# LIBRARY: that of the release or dev build by default. CSV: build/clients/clients.csv by default. Exit status 0: all results
# right and calls served; 77: no GPU. GEMM_TABLE and GEMM_CACHE_DIR are taken from the environment where they are set.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
out=$repository/build/clients
mkdir -p "$out"

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'run_clients: %s\n' "$*" >&2
  exit 1
}

library=${1:-}
for built in "$repository"/build/{release,dev}/src/dropin/lib*_cublas.so; do
  [ -n "$library" ] || [ ! -e "$built" ] || library=$built
done
[ -e "$library" ] || fail "there is no library '$library'; build one with ./dev build"
library=$(realpath "$library")
csv=${2:-$out/clients.csv}

if ! { nvidia-smi -L 2>/dev/null || true; } | grep -q '^GPU'; then
  say 'no GPU here (nvidia-smi -L finds none)'
  exit 77
fi
if [ -z "${GEMM_TABLE:-}" ]; then
  slug=$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0 | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9]+/-/g; s/-$//')
  table=$repository/configs/$slug.json
  if [ -e "$table" ]; then export GEMM_TABLE=$table; fi
fi
export GEMM_CACHE_DIR=${GEMM_CACHE_DIR:-$out/cache}

# Folders that may hold CUDA: the toolkit's, and those of Python's packages.
cuda_folders() {
  local compiler
  if compiler=$(command -v nvcc); then dirname "$(dirname "$(realpath "$compiler")")"; fi
  printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda
  python3 -c 'import nvidia, glob; [print(f) for p in nvidia.__path__ for f in glob.glob(p + "/cu1*")]' 2>/dev/null || true
}

# Builds the sample program and prints its path, or nothing where that cannot be done here.
build_program() {
  local program=$out/cublas_client root lib
  while IFS= read -r root; do
    [ -e "$root/include/cublas_v2.h" ] || continue
    for lib in "$root"/{lib64,lib,targets/x86_64-linux/lib}; do
      if g++ -O2 -std=c++17 "$here/cublas_client.cpp" -o "$program" -I"$root/include" "$lib"/libcublas.so.1? \
        "$lib"/libcublasLt.so.1? "$lib"/libcudart.so.1? -Wl,-rpath,"$lib" && "$program" >/dev/null; then
        echo "$program"
        return
      fi
    done
  done < <(cuda_folders) 2>"$out/build.log"
}

# run LABEL COMMAND...: one client, plain and preloaded. What it prints are the lines for compare.py. A client that fails does
# not stop the others.
run() {
  local label=$1
  shift
  say "$label"
  "$@" >>"$out/plain.jsonl" || failed=1
  LD_PRELOAD=$library GEMM_DROPIN_REPORT=1 "$@" >>"$out/dropin.jsonl" || failed=1
}

has_module() { python3 -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)"; }

failed=0
rm -f "$out"/{plain,dropin}.jsonl
unset LD_PRELOAD GEMM_DROPIN GEMM_DROPIN_REPORT NVIDIA_TF32_OVERRIDE
program=$(build_program)
if [ -n "$program" ]; then
  run 'a program' python3 "$here/program_client.py" program "$program"
else
  say "a program: left out, it cannot be built here (see $out/build.log)"
fi
if has_module torch; then
  run PyTorch python3 "$here/pytorch_client.py" PyTorch
  # By default PyTorch asks cublasLt to add the bias of a linear layer. With this variable it does not.
  DISABLE_ADDMM_CUDA_LT=1 run 'PyTorch without cublasLt' python3 "$here/pytorch_client.py" 'PyTorch, no Lt' \
    'linear 4096x1024x1024' 'transformer training'
else
  say 'PyTorch: left out, it is not installed'
fi
if has_module cupy; then
  run CuPy python3 "$here/cupy_client.py" CuPy
else
  say 'CuPy: left out, it is not installed'
fi
[ -e "$out/dropin.jsonl" ] || fail 'no client could run'
python3 "$here/compare.py" "$out/plain.jsonl" "$out/dropin.jsonl" "$csv" || failed=1
say "$SECONDS s; written to $csv"
[ "$failed" = 0 ] || fail 'not all clients passed'
