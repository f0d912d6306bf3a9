"""Each section of the settings belongs to the package that reads it."""

from __future__ import annotations

import subprocess
import sys

from pydantic import BaseModel

from lumos.core.runtime.settings import LumosSettings
from lumos.core.settings import ProjectSettings


def section_models() -> dict[str, type[BaseModel]]:
    """Return the models of sections that something reads."""
    return {
        name: field.annotation
        for name, field in LumosSettings.model_fields.items()
        if name not in LumosSettings.not_read_yet
        and isinstance(field.annotation, type)
        and issubclass(field.annotation, BaseModel)
    }


def test_each_section_is_a_model_of_the_package_that_reads_it() -> None:
    owners = {name: model.__module__.rpartition(".")[0] for name, model in section_models().items()}
    assert owners == {
        "alerts": "lumos.feature.alerting",
        "change_policy": "lumos.core.changes",
        "features": "lumos.core.runtime",
        "logging": "lumos.core",
        "observations": "lumos.core.store",
        "search": "lumos.feature.search",
        "snapshots": "lumos.core.store",
        "spark": "lumos.spark",
        "sync": "lumos.feature.sync",
        "watch": "lumos.feature.watching",
    }


def test_a_project_has_no_section_of_a_package_by_itself() -> None:
    kinds = [field.annotation for field in ProjectSettings.model_fields.values()]
    assert not [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def test_settings_are_loaded_without_the_packages_that_read_them() -> None:
    script = """
import sys
import lumos.core.runtime.settings
heavy = ("lumos.core.changes.rules", "lumos.feature.sync.sync_run", "lumos.spark.session",
         "lumos.core.store.database", "lumos.feature.alerting.channels", "pyspark", "sqlalchemy")
sys.exit(", ".join(name for name in heavy if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""
