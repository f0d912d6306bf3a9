"""Creates users and groups and assigns owners, from documents that people keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from pydantic import model_validator

from lumos.core.errors import ConfigurationError, LumosError
from lumos.core.models import Group, LumosDataset, Owner, Ownership, Urn, User, with_parts
from lumos.core.models.base import CanonicalModel, Name
from lumos.core.platform.abilities import EntityAbility
from lumos.core.platform.dataset_reference import (
    DatasetFinder,
    DatasetReference,
    UnresolvedReferenceError,
)
from lumos.core.platform.entity_writer import UNCHANGED, EntityWriter
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.settings.item_document import DocumentItem, ItemDocument, with_names

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.run_report import RunRecorder
    from lumos.core.settings import SettingsDocument

Publish = Callable[[LumosDataset, LumosDataset], None]

_KNOWN = ("operation", "description", "users", "groups", "assignments")


_OTHER_NAMES = {
    "entity": "dataset",
    "owner_name": "owner",
    "owner_category": "category",
    "ownership_type": "type",
    "owner_type": "type",
}


class Assignment(CanonicalModel):
    """Who owns what, in the shape of Lumos or of the earlier framework.

    The owner is `user` or `group`, or `owner` with its `category`. Without a category, `owner` is
    looked up among the users and groups that the catalog knows.
    """

    dataset: DatasetReference
    user: Name | None = None
    group: Name | None = None
    owner: Name | None = None
    category: Literal["user", "group"] | None = None
    type: Name = "TECHNICAL_OWNER"

    @model_validator(mode="before")
    @classmethod
    def _accept_other_spellings(cls, value: object) -> object:
        return with_names(value, _OTHER_NAMES)

    @model_validator(mode="after")
    def _names_one_owner(self) -> Self:
        if len([each for each in (self.user, self.group, self.owner) if each]) != 1:
            raise ValueError("an assignment must name one owner: user, group, or owner")
        if self.category and not self.owner:
            raise ValueError("an assignment has a category, which goes with owner only")
        return self


class _OwnerRequest(NamedTuple):
    label: str
    owner: Owner


class OwnershipService:
    """Users, groups and owners by file. Running a document again changes nothing."""

    def __init__(
        self, platform: MetadataPlatformInterface, *, publish: Publish | None = None
    ) -> None:
        """Work on a catalog.

        Args:
            platform: the catalog.
            publish: takes the old and the new state of a dataset, once for each dataset that
                changes, and writes the new one; without it, the catalog simply gets the new one.
        """
        self._platform = platform
        self._publish = publish or (lambda _, new: platform.emit_dataset(new))

    def create_users(
        self, document: SettingsDocument | Mapping[str, JsonValue], *, recorder: RunRecorder
    ) -> None:
        """Create the `users` of a document, or bring them up to date.

        Raises:
            ConfigurationError: the document as a whole is not one of users.
            CapabilityError: the catalog keeps no users.
        """
        items = _items(document, "users", operation="create_users")
        EntityWriter(self._platform).write(items, User, kind="user", recorder=recorder)

    def create_groups(
        self, document: SettingsDocument | Mapping[str, JsonValue], *, recorder: RunRecorder
    ) -> None:
        """Create the `groups` of a document, or bring them up to date.

        Raises:
            ConfigurationError: the document as a whole is not one of groups.
            CapabilityError: the catalog keeps no groups.
        """
        items = _items(document, "groups", operation="create_groups")
        EntityWriter(self._platform).write(items, Group, kind="group", recorder=recorder)

    def assign(
        self, document: SettingsDocument | Mapping[str, JsonValue], *, recorder: RunRecorder
    ) -> None:
        """Add the owners of a document's `assignments` to their datasets; other owners stay.

        Raises:
            ConfigurationError: the document as a whole is not one of assignments.
        """
        items = _items(document, "assignments", operation="assign_ownership")
        people = _People(self._platform)
        finder = DatasetFinder(self._platform)
        assignments = list(_readable(items, recorder))
        finder.prepare(assignment.dataset for _, assignment in assignments)
        datasets: dict[Urn, LumosDataset] = {}
        requests: dict[Urn, list[_OwnerRequest]] = {}
        for item, assignment in assignments:
            try:
                dataset = finder.find(assignment.dataset)
                owner = people.owner_of(assignment)
            except LumosError as error:
                recorder.failed(f"{item.label}: {assignment.dataset}", error, scope_seen=True)
                continue
            if not people.knows(owner):
                recorder.warning(f"{owner.category} {owner.name} is not known to the catalog")
            datasets[dataset.urn] = dataset
            request = _OwnerRequest(
                f"{owner.type} {owner.category} {owner.name} of {dataset.urn}", owner
            )
            requests.setdefault(dataset.urn, []).append(request)
        for urn, dataset in datasets.items():
            self._give(dataset, requests[urn], recorder=recorder)

    def _give(
        self, dataset: LumosDataset, requests: list[_OwnerRequest], *, recorder: RunRecorder
    ) -> None:
        """Add all new owners of one dataset at once, so that it gets one new version."""
        owners = {*dataset.ownership.owners}
        added = []
        for request in requests:
            if request.owner in owners:
                recorder.skipped(request.label, reason=UNCHANGED)
            else:
                owners.add(request.owner)
                added.append(request)
        if not added:
            return
        try:
            ownership = Ownership(owners=tuple(owners))
            self._publish(dataset, with_parts(dataset, ownership=ownership))
        except LumosError as error:
            for request in added:
                recorder.failed(request.label, error, scope_seen=True)
            return
        for request in added:
            recorder.done(request.label)


class _People:
    """The users and groups that the catalog knows, read when somebody asks."""

    def __init__(self, platform: MetadataPlatformInterface) -> None:
        self._platform = platform
        self._names: dict[str, frozenset[str]] | None = None

    def owner_of(self, assignment: Assignment) -> Owner:
        """Return the owner that an assignment names, in the role it gives."""
        if assignment.owner is None:
            return Owner(user=assignment.user, group=assignment.group, type=assignment.type)
        category = assignment.category or self._category_of(assignment.owner)
        return Owner.from_json({category: assignment.owner, "type": assignment.type})

    def knows(self, owner: Owner) -> bool:
        """Return whether the catalog has such a user or group; one that keeps none has all."""
        return not self._keeps_people or owner.name in self._known()[owner.category]

    def _category_of(self, name: str) -> str:
        known = self._known() if self._keeps_people else {}
        fitting = [category for category, names in known.items() if name in names]
        if len(fitting) == 1:
            return fitting[0]
        which = "both a user and a group are" if fitting else "no user or group is"
        raise UnresolvedReferenceError(
            f"{which} called {name}", hint="write user: or group: instead of owner:"
        )

    @property
    def _keeps_people(self) -> bool:
        return Capability.ENTITIES in self._platform.capabilities

    def _known(self) -> Mapping[str, frozenset[str]]:
        if self._names is None:
            people = EntityAbility.of(self._platform)
            users, groups = people.list_entities("user"), people.list_entities("group")
            self._names = {
                "user": frozenset(user.username for user in users if isinstance(user, User)),
                "group": frozenset(group.name for group in groups if isinstance(group, Group)),
            }
        return self._names


def _items(
    content: SettingsDocument | Mapping[str, JsonValue], section: str, *, operation: str
) -> tuple[DocumentItem, ...]:
    document = ItemDocument(content, known=_KNOWN)
    said = document.text("operation")
    if said is not None and said != operation:
        raise ConfigurationError(
            f"the document is meant for {said}, not for {operation}",
            hint="give it to the command that it is meant for",
        )
    return document.items(section, required=True)


def _readable(
    items: tuple[DocumentItem, ...], recorder: RunRecorder
) -> list[tuple[DocumentItem, Assignment]]:
    found = []
    for item in items:
        try:
            found.append((item, item.read(Assignment)))
        except LumosError as error:
            recorder.failed(item.label, error, scope_seen=True)
    return found
