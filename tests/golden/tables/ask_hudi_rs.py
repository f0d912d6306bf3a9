"""Adds to each Hudi table here what a second reader, hudi-rs, says of its schema.

Run it after `write_with_spark.py`, with the packages `hudi` and `pyarrow` and the same folder.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
from pathlib import Path

import pyarrow as pa


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", choices=["hudi0", "hudi1"])
    parser.add_argument("work", type=Path, help="the folder with the data files")
    options = parser.parse_args()
    builder = importlib.import_module("hudi").HudiTableBuilder
    for folder in sorted(Path(__file__).parent.glob(f"{options.prefix}-*")):
        root = options.work / folder.name.partition("-")[2]
        table = builder.from_base_uri(str(root)).build()
        schema = pa.schema(table.get_schema_with_meta_fields())
        path = folder / "expected.json"
        expected = json.loads(path.read_text("utf-8"))
        expected["hudi_rs_schema"] = base64.b64encode(schema.serialize()).decode("ascii")
        text = json.dumps(expected, indent=1, sort_keys=True)
        path.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    main()
