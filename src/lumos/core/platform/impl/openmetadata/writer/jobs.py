"""Jobs on an OpenMetadata server, which calls them pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_object
from lumos.core.platform.impl.openmetadata.mapping.changes import changes, stash_changes
from lumos.core.platform.impl.openmetadata.mapping.entities import (
    SERVICE_TYPE,
    kept_of_job,
    wire_job,
)
from lumos.core.platform.impl.openmetadata.mapping.names import fqn, pipeline_path
from lumos.core.platform.impl.openmetadata.mapping.stashed import (
    SHOWN,
    job_stash,
    node_stash,
    read_job,
    with_extension,
)
from lumos.core.platform.impl.openmetadata.writer.datasets import DatasetWires, name_in
from lumos.core.platform.impl.openmetadata.writer.fields import DISPLAY_NAME

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import Job
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.writer.fields import FieldWriter
    from lumos.core.platform.unreadable import UnreadableItems

_TYPE: Final = "pipeline"
_EDITED: Final = (DISPLAY_NAME, "description")
"""What people edit of a pipeline: what Lumos did not write stays."""


class JobWires:
    """Reads and writes pipelines."""

    def __init__(
        self, api: OpenMetadataApi, datasets: DatasetWires, *, fields: FieldWriter
    ) -> None:
        self._api = api
        self._datasets = datasets
        self._fields = fields

    def write(self, job: Job) -> None:
        """Bring the pipeline of a job up to date."""
        service, name = pipeline_path(job.urn)
        full = fqn((service, name))
        entity = self._api.find(_TYPE, full)
        if entity is not None and read_job(entity) == job:
            return
        wanted = wire_job(job, name=name)
        if entity is not None:
            wanted = self._left_to_people(wanted, entity)
        shown: Json = {part: wanted[part] for part in _EDITED if wanted.get(part)}
        named: Json = {"name": name, "fullyQualifiedName": full}
        foreseen = job_stash({**named, **wanted}, job, shown=shown)
        self._api.declare(_TYPE, foreseen)
        if entity is None:
            hints = (str(kept_of_job(job).get(SERVICE_TYPE)),)
            self._datasets.service("pipelineService", service, hints=hints)
            body: Json = {"name": name, "service": fqn((service,)), **wanted}
            self._fields.create(_TYPE, with_extension(body, foreseen), wanted=wanted)
        else:
            if entity.get("tasks"):
                del wanted["tasks"]  # they may be those of a scheduler
            changed = changes(entity, wanted, removable=_EDITED)
            self._fields.patch(_TYPE, entity, changes=[*changed, *stash_changes(entity, foreseen)])
        stored = as_object(self._api.find(_TYPE, full), "pipeline")
        text = job_stash(stored, job, shown=shown)
        if changed := stash_changes(stored, text):
            self._api.declare(_TYPE, text)
            self._api.patch(_TYPE, stored, changes=changed)

    def all(self, unread: UnreadableItems) -> Iterator[Job]:
        """Yield all jobs in ascending order of URN; one that cannot be read is noted."""
        read = unread.each("job", self._api.list(_TYPE), read_job, name=name_in)
        yield from sorted(read, key=lambda job: job.urn)

    def _left_to_people(self, wanted: Json, entity: Json) -> Json:
        """Return what is wanted of a pipeline, with what people wrote in place of Lumos's words."""
        known = node_stash(entity).get(SHOWN)
        before = known if isinstance(known, dict) else {}
        theirs: Json = {
            part: entity.get(part) for part in _EDITED if entity.get(part) != before.get(part)
        }
        if not self._fields.may_name:
            theirs[DISPLAY_NAME] = entity.get(DISPLAY_NAME)
        return {name: value for name, value in {**wanted, **theirs}.items() if value}
