"""A compiled program as a client: runs each step of cublas_client.cpp, which prints its own JSON line.

    python3 program_client.py LABEL PROGRAM        one JSON line for each step; exit status 77 without a GPU
"""

import subprocess
import sys

from client_steps import STEP_SECONDS, finish

if __name__ == "__main__":
    label, program = sys.argv[1:3]
    steps = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    all_done = True
    for step in steps:
        done = subprocess.run([program, step], capture_output=True, text=True, timeout=STEP_SECONDS)
        all_done = finish(label, step, done.stdout, done.stderr, done.returncode) and all_done
    sys.exit(0 if all_done else 1)
