"""Carries out the requests that bring users, owners and documentation into the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.controllers.people_controller import PeopleController
from lumos.core.requests.people import (
    EnrichRequest,
    OwnershipAssignRequest,
    OwnershipGroupsRequest,
    OwnershipUsersRequest,
)

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.run_report import RunReport


def users(call: Call, request: OwnershipUsersRequest) -> RunReport:
    return PeopleController(call.work).create_users(request.file)


def groups(call: Call, request: OwnershipGroupsRequest) -> RunReport:
    return PeopleController(call.work).create_groups(request.file)


def assign(call: Call, request: OwnershipAssignRequest) -> RunReport:
    return PeopleController(call.work).assign(request.file)


def enrich(call: Call, request: EnrichRequest) -> RunReport:
    return PeopleController(call.work).enrich(request.file)


OPERATIONS = {
    OwnershipUsersRequest: users,
    OwnershipGroupsRequest: groups,
    OwnershipAssignRequest: assign,
    EnrichRequest: enrich,
}
