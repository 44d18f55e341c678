"""CuPy as a client of cuBLAS: matmul in FP32.

    python3 cupy_client.py LABEL        one JSON line for each step; exit status 77 without a GPU
"""

import math
import sys

import cupy

from client_steps import run_steps

EPS = 5.97e-8


def matmul(shape_a, shape_b, transpose=False):
    def step():
        generator = cupy.random.RandomState(1)
        a = generator.standard_normal(shape_a, dtype=cupy.float32)
        b = generator.standard_normal(shape_b, dtype=cupy.float32)
        if transpose:
            b = b.swapaxes(-1, -2)

        def check():
            exact = a.astype(cupy.float64) @ b.astype(cupy.float64)
            magnitude = abs(a).astype(cupy.float64) @ abs(b).astype(cupy.float64)
            bound = EPS * (4 + 2 * math.sqrt(a.shape[-1])) * magnitude + 1e-36
            scaled = float((abs((a @ b).astype(cupy.float64) - exact) / bound).max())
            return {
                "kind": "bound",
                "error": scaled if math.isfinite(scaled) else math.inf,
                "fingerprint": float(exact.sum()),
            }

        return lambda: a @ b, check

    return step


STEPS = {
    "matmul 2048x2048x2048": matmul((2048, 2048), (2048, 2048)),
    "matmul 1000x1537x777 T": matmul((1000, 777), (1537, 777), transpose=True),
    "matmul 32 of 256x256x256": matmul((32, 256, 256), (32, 256, 256)),
}


def has_gpu():
    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


if __name__ == "__main__":
    run_steps(sys.argv[1], STEPS, has_gpu, lambda: cupy.cuda.Device().synchronize())
