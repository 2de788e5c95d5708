"""One release in a process that has already done a tiny one, watched from inside. Run by bench.scale."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import psutil

INTERVAL = 0.02


def main() -> None:
    home, tiny, spec = (Path(argument).resolve() for argument in sys.argv[1:4])
    from tasks.home import Home
    from tasks.settings import settle

    Home(home).prepare()
    settle(home)
    from flows.release import release

    started = time.perf_counter()
    release(tiny, home)  # imports every library and starts Prefect's server
    start_up = time.perf_counter() - started
    process = psutil.Process()
    idle = peak = process.memory_info().rss
    stop = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(INTERVAL):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    done = release(spec, home)
    seconds = time.perf_counter() - started
    stop.set()
    watcher.join()
    if done.status != "published" or done.resumed:
        raise RuntimeError(f"the release was {done.status}")
    reports = sum(path.stat().st_size for path in (home / "reports" / done.release_id).rglob("*.parquet"))
    print(json.dumps({"seconds": seconds, "start_up": start_up, "idle": idle, "peak": peak, "reports": reports}))


if __name__ == "__main__":
    main()
