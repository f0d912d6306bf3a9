"""Carries out the requests on versions and alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.requests.versions import (
    AlertsListRequest,
    AlertsSendRequest,
    AlertsTestRequest,
    VersionApplyRequest,
    VersionComputeRequest,
    VersionIncrementRequest,
    VersionShowRequest,
)

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.controllers.alert_controller import AlertController
    from lumos.core.controllers.version_controller import VersionController
    from lumos.feature.alerting.results import (
        AlertListResult,
        AlertSendResult,
        AlertTestResult,
    )
    from lumos.feature.versioning.models import VersionUpdateResult
    from lumos.feature.versioning.results import (
        VersionApplyResult,
        VersionScanResult,
        VersionsResult,
    )


def show(call: Call, request: VersionShowRequest) -> VersionsResult:
    return _versions(call).show(request.dataset, limit=request.limit, after=request.after)


def compute(call: Call, request: VersionComputeRequest) -> VersionScanResult:
    return _versions(call, edited=request.edited).compute(
        source=request.source,
        target=request.target,
        retire=request.retire,
        limit=request.limit,
        progress=call.listener.progress,
    )


def apply(call: Call, request: VersionApplyRequest) -> VersionApplyResult:
    return _versions(call, edited=request.edited).apply(
        source=request.source,
        target=request.target,
        retire=request.retire,
        limit=request.limit,
        batch_size=request.batch_size,
        alert=request.alert,
        progress=call.listener.progress,
    )


def increment(call: Call, request: VersionIncrementRequest) -> VersionUpdateResult:
    return _versions(call).increment(request.dataset, request.change_type, author=request.author)


def list_alerts(call: Call, request: AlertsListRequest) -> AlertListResult:
    from lumos.core.controllers.catalog_controller import CatalogController

    urn = CatalogController(call.work).urn_of(request.dataset) if request.dataset else None
    return _alerts(call).list(state=request.state, urn=urn, limit=request.limit)


def send_alerts(call: Call, request: AlertsSendRequest) -> AlertSendResult:
    return _alerts(call).send(everything=request.everything)


def test_channel(call: Call, request: AlertsTestRequest) -> AlertTestResult:
    return _alerts(call).test(request.channel)


def _versions(call: Call, *, edited: bool = False) -> VersionController:
    from lumos.core.controllers.version_controller import VersionController

    return VersionController(call.work, edited=edited)


def _alerts(call: Call) -> AlertController:
    from lumos.core.controllers.alert_controller import AlertController

    return AlertController(call.work)


OPERATIONS = {
    VersionShowRequest: show,
    VersionComputeRequest: compute,
    VersionApplyRequest: apply,
    VersionIncrementRequest: increment,
    AlertsListRequest: list_alerts,
    AlertsSendRequest: send_alerts,
    AlertsTestRequest: test_channel,
}
