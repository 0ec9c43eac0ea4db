"""Writes what hunts expect of healthy networks, from the table of hunts.

python tools/healthy_levels.py docs/results/hunts.csv.gz

The levels are those of the healthy networks on which hunts are calibrated. A test checks that the file of the package
is what this program makes of the committed table.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from netpurify.atomic import write_atomically
from netpurify.experiments.studies.unlearn.alarms import calibration
from netpurify.findings import read_table

FILE = Path(__file__).parents[1] / "src/netpurify/network/hunting/healthy.json"

if __name__ == "__main__":
    rows = [row for row in read_table(Path(sys.argv[1])) if row["failure"] is None]
    content = {kind: asdict(expected) for kind, expected in calibration(rows).items()}
    with write_atomically(FILE) as stream:
        stream.write((json.dumps(content, indent=1) + "\n").encode())
