"""What the scripts of the other programs share: timing, and the one line of JSON that each prints."""
import json
import statistics
import time


def median_seconds(run, runs, warmup=1):
    """Returns the median time of `runs` calls, after `warmup` calls that are not measured."""
    for _ in range(warmup):
        run()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(figure, version, flags):
    print(json.dumps({"figure": figure, "version": version, "flags": flags}))
