"""Runs the steps of a client, each in a process of its own, and writes one JSON line for each.

A step is a function that returns (run, check): `run()` does the work once, `check()` says how far its results are from FP64.
A process for each step, because the drop-in reports its counts when a process ends. Children are forked after the client's
imports but before CUDA is touched, so a step costs a CUDA context and no more.
"""

import json
import os
import re
import signal
import statistics
import sys
import tempfile
import time

NO_GPU = 77
STEP_SECONDS = 60  # a step that takes longer hangs
REPORT = re.compile(r"gemm drop-in: (\d+) served, (\d+) forwarded(.*)")


def median_ms(run, synchronize, samples=15, sample_ms=20.0, warm_up_s=0.3):
    """Median wall time of one run, launch and work: samples of several runs, between two synchronisations each. Steps of
    many small kernels wait for Python, so they need a warm processor and samples of several steps."""

    def timed(repeats):
        synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        synchronize()
        return (time.perf_counter() - start) * 1e3 / repeats

    for _ in range(3):  # kernels are compiled and chosen, caches filled
        timed(1)
    begin = time.perf_counter()
    while time.perf_counter() - begin < warm_up_s:
        timed(3)
    repeats = max(1, min(2000, round(sample_ms / max(timed(3), 1e-3))))
    return statistics.median(timed(repeats) for _ in range(samples))


def counts(stderr):
    """What the drop-in said at exit: (served, forwarded, details), or Nones where it was not loaded."""
    found = REPORT.search(stderr)
    return (int(found[1]), int(found[2]), found[3].strip("; ")) if found else (None, None, None)


def finish(client, step, output, stderr, status):
    """Prints the line of a step that has ended and returns True, or says what went wrong; exits where there is no GPU."""
    if status == NO_GPU:
        print(f"{client}: no GPU here", file=sys.stderr)
        sys.exit(NO_GPU)
    if status != 0:
        print(f"{stderr}{client}, {step}: exit status {status}", file=sys.stderr)
        return False
    result = json.loads(output)
    served, forwarded, details = counts(stderr)
    result.update(client=client, step=step, served=served, forwarded=forwarded, details=details)
    print(json.dumps(result), flush=True)
    return True


def measure(step, synchronize):
    run, check = step()
    result = check()  # before the timing: training steps change their weights
    result["ms"] = median_ms(run, synchronize)
    return result


def run_steps(client, steps, has_gpu, synchronize):
    """Runs {name: step}; exits with 1 where one failed. `has_gpu` and `synchronize` are called in the children only, and only
    they report."""
    report = os.environ.pop("GEMM_DROPIN_REPORT", None)
    all_done = True
    for name, step in steps.items():
        output = tempfile.TemporaryFile("w+")
        stderr = tempfile.TemporaryFile("w+")
        child = os.fork()
        if child == 0:
            os.dup2(stderr.fileno(), 2)
            signal.alarm(STEP_SECONDS)
            if report:
                os.environ["GEMM_DROPIN_REPORT"] = report
            if not has_gpu():
                sys.exit(NO_GPU)
            json.dump(measure(step, synchronize), output)
            output.flush()
            sys.exit(0)  # in the usual way, so that the drop-in reports
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        stderr.seek(0)
        all_done = finish(client, name, output.read(), stderr.read(), status) and all_done
    if not all_done:
        sys.exit(1)
