"""Prints the datasets of a folder of JSON Schema files: python -m shop_plugins FOLDER."""

import sys
from datetime import UTC, datetime

from lumos.core.run_report import RunRecorder
from lumos.feature.ingestion.handlers.factory import HandlerFactory

handler = HandlerFactory.get_handler({"type": "json-schema", "path": sys.argv[1]})
recorder = RunRecorder("ingest", started_at=datetime.now(UTC))
for dataset in handler.ingest(recorder):
    sys.stdout.write(f"{dataset.urn}: {len(dataset.schema.fields)} columns\n")
sys.stdout.write(recorder.finish(at=datetime.now(UTC)).as_text() + "\n")
