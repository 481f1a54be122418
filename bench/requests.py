"""What a study in a bucket asks its server for, counted at full size: 2,000 trials on 20 workers, and a join of 10,000.

``python -m bench.requests``. Heartbeats come on top: a GET and a PUT each. Prices are those of AWS in $ per million.
"""

from __future__ import annotations

from tests.buckets.test_requests import counted, search, workers

from dibs.backend import MemoryBackend

PRICES = {"PUT": 5.0, "LIST": 5.0, "GET": 0.4}


def price(spent: dict[str, int]) -> float:
    return sum(PRICES[verb] * count for verb, count in spent.items()) / 1e6


def main() -> None:
    trials = 2_000
    spent = counted(*search(MemoryBackend(conditional_replace=True), trials, 20))
    print(f"{trials} trials, 20 workers: {dict(spent)}, ${price(spent):.3f}")
    print("per trial: " + ", ".join(f"{count / trials:.2f} {verb}" for verb, count in spent.items()))
    bucket = MemoryBackend(conditional_replace=True)
    search(bucket, 10_000, 2)
    ((study, backend),) = workers(bucket, 1)
    study.view.refresh()
    joined = counted(backend)
    print(f"joining 10,000 finished trials: {sum(joined.values())} requests, {dict(joined)}, ${price(joined):.6f}")


if __name__ == "__main__":
    main()
