"""python-diskcache under the phases of DiskBenchmark: diskcache_peer.py PHASE DIRECTORY NUMBER POLICY [TRACE]."""
import math
import random
import resource
import sys
import time

from diskcache import Cache

MASK = (1 << 64) - 1
# Operations whose mean counts where the median of single ones would hide what they cost together.
BLOCK = 64


def mix(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def size(number):
    return int(2048 * math.exp((mix(number ^ 0xABCDEF) >> 11) / 9007199254740992 * math.log(25)))


def key(number):
    return "https://img.example.org/p/%x/256x256@2x.webp" % mix(number)


NOISE = random.Random(1).randbytes(2 << 20)


def value(number):
    start = (number * 64) & 0xFFFFF
    return NOISE[start:start + size(number)]


def measure(phase, numbers, operation):
    times = []
    cpu, start = time.process_time(), time.perf_counter()
    last = start
    for number in numbers:
        operation(number)
        now = time.perf_counter()
        times.append(now - last)
        last = now
    cpu = time.process_time() - cpu
    blocks = sorted(sum(times[at:at + BLOCK]) / BLOCK for at in range(0, len(times) - BLOCK + 1, BLOCK))
    times.sort()
    scale = 1e6 / len(times)
    print(f"phase {phase} p50 {times[len(times) // 2] * 1e6:.3f} mean {(last - start) * scale:.3f} cpu {cpu * scale:.3f}")
    print(f"phase {phase}-blocks p50 {blocks[len(blocks) // 2] * 1e6:.3f} mean {(last - start) * scale:.3f} "
          f"cpu {cpu * scale:.3f}")


def shuffled(count, seed):
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def phases(directory, entries, policy):
    cache = Cache(directory, eviction_policy=policy, size_limit=1 << 40)
    keys = [key(number) for number in range(entries * 2)]
    values = [value(number) for number in range(entries)]
    missing = [key(10_000_000 + number) for number in range(entries)]
    order = shuffled(entries, 5)

    def put(number):
        cache[keys[number]] = values[number]

    measure("put", range(entries), put)
    measure("get", order, lambda number: cache.get(keys[number]))
    measure("get2", shuffled(entries, 9), lambda number: cache.get(keys[number]))
    measure("miss", range(entries), lambda number: cache.get(missing[number]))
    # Full: every put makes the cache cull.
    cache.reset("size_limit", cache.volume())
    before = len(cache)

    def replace(index):
        cache[keys[entries + index]] = values[order[index]]

    measure("full", range(entries // 2), replace)
    print(f"full-count {before} {len(cache)}")
    cache.reset("size_limit", 1 << 40)
    left = [name for name in cache][:entries // 2]
    measure("delete", range(len(left)), lambda index: cache.delete(left[index]))
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}")


def replay(directory, capacity, policy, trace):
    cache = Cache(directory, eviction_policy=policy, size_limit=capacity)
    data = memoryview(open(trace, "rb").read()).cast("I")
    requests = data[::2].tolist()
    hits = 0
    cpu = time.process_time()
    for number in requests:
        name = key(number)
        if cache.get(name) is not None:
            hits += 1
        else:
            cache[name] = value(number)
    spent = (time.process_time() - cpu) * 1e6 / len(requests)
    print(f"hits {hits * 100 / len(requests):.3f} cpu {spent:.2f} size {cache.volume()}")


if __name__ == "__main__":
    if sys.argv[1] == "phases":
        phases(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        replay(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
