"""`python -m tests.chaos [--minutes 5] [--seed 1]`: inject random faults, and check that every
response that clients got is true. Exits with 1 if one isn't."""

import argparse
import random

from tests.chaos.plan import SHORT_SECONDS, plan, short
from tests.chaos.run import NODES, happened, print_line


def main() -> None:
    """Run and report the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults come (5)")
    parser.add_argument("--seed", type=int, default=None, help="of the faults (another each time)")
    parser.add_argument("--short", action="store_true", help="the plan of the test suite")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    seconds = SHORT_SECONDS if options.short else options.minutes * 60
    faults = short() if options.short else plan(seed, seconds, NODES)
    print_line(f"seed {seed}, {seconds:g} seconds, {len(faults)} faults:")
    for fault in faults:
        print_line(f"  at {fault.at:6.1f} s  {fault}")
    wrong = happened(seed, faults, seconds, print_line)
    if wrong is None:
        raise SystemExit("There is no PostgreSQL on this machine (initdb).")
    if wrong:
        print_line(f"DOES NOT HOLD ({len(wrong)}), with seed {seed}:")
        for text in wrong[:60]:
            print_line(f"- {text}")
        raise SystemExit(1)
    print_line("Everything holds.")


if __name__ == "__main__":
    main()
