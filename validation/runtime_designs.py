#!/usr/bin/env python3
"""What other ways to predict run time would have come to, from what runtime.sh has printed:

    validation/runtime_designs.py docs/validation.md

The simulation of a recording falls short of the recording. Each way makes the prediction longer for that: by the same
factor, by the same time, or by a factor on computing. That factor is fitted, for each program on the other programs: a
factor fitted on all of them would be judged by what it was made of.
"""

import re
import statistics
import sys

PROGRAM = re.compile(r"    (\S+) +([\d.]+) +([\d.]+) +([+-][\d.]+)%$")
CELL = re.compile(r"    (\S+) +(\S+) +([\d.]+) \(.*?\) +([\d.]+) \(.*?\) +([+-][\d.]+)% +([\d.]+)$")
FACTORS = [1 + n / 100 for n in range(-20, 41)]


def read(path):
    recorded, cells = {}, []
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        if found := PROGRAM.match(line):
            recorded.setdefault(found[1], (float(found[2]), 1 + float(found[4]) / 100))
        elif found := CELL.match(line):
            # The error as printed is more exact than the quotient of the times as printed.
            measured_s, calls_s = float(found[4]), float(found[6])
            cells.append((found[1], (1 + float(found[5]) / 100) * measured_s, measured_s, calls_s))
    assert cells and all(program in recorded for program, *_ in cells), f"{path}: not what runtime.sh prints"
    return recorded, cells


def computing(cell, factor):
    _, predicted_s, measured_s, calls_s = cell
    return ((predicted_s - calls_s) * factor + calls_s) / measured_s - 1


def fitted(cells, program):
    others = [cell for cell in cells if cell[0] != program]
    return min(FACTORS, key=lambda f: statistics.median(abs(computing(cell, f)) for cell in others))


def main():
    recorded, cells = read(sys.argv[1])
    factors = {program: fitted(cells, program) for program in recorded}
    ways = {
        "as it is": lambda c: c[1] / c[2] - 1,
        "times what was recorded over what was simulated": lambda c: c[1] / recorded[c[0]][1] / c[2] - 1,
        "plus what was recorded and not simulated": lambda c: (c[1] + recorded[c[0]][0] * (1 - recorded[c[0]][1])) / c[2] - 1,
        "computing times a factor fitted on the other programs": lambda c: computing(c, factors[c[0]]),
    }
    for name, way in ways.items():
        errors = [way(cell) for cell in cells]
        size = [abs(error) for error in errors]
        print(f"{name:56} median {statistics.median(size):6.1%}, largest {max(size):6.1%}, signed {statistics.median(errors):+6.1%}")
    low, high = min(factors.values()), max(factors.values())
    print(f"the factors: {low:.2f} to {high:.2f}")


main()
