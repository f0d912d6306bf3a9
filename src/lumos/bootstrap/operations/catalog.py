"""Carries out the requests that read what is known of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.requests.catalog import (
    BlameRequest,
    CompareRequest,
    HistoryRequest,
    SearchRequest,
    ShowRequest,
    TrendRequest,
)

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.controllers.catalog_controller import CatalogController
    from lumos.core.controllers.catalog_results import (
        ComparisonResult,
        ShownDataset,
        TrendResult,
    )
    from lumos.core.models import SchemaHistory
    from lumos.core.platform.search_page import SearchPage
    from lumos.feature.versioning.results import BlameResult


def search(call: Call, request: SearchRequest) -> SearchPage:
    from lumos.core.controllers.search_controller import SearchController
    from lumos.core.platform.search_page import SearchFilters

    filters = SearchFilters(
        platform=request.platform,
        owner=request.owner,
        tag=request.tag,
        column=request.column,
        min_quality=request.min_quality,
    )
    return SearchController(call.work).search(
        request.text,
        filters,
        catalogs=request.catalogs,
        platforms=request.platforms,
        limit=request.limit,
        offset=request.offset,
    )


def show(call: Call, request: ShowRequest) -> ShownDataset:
    return _catalog(call).shown(request.dataset, contributions=request.contributions)


def trend(call: Call, request: TrendRequest) -> TrendResult:
    return _catalog(call).trend(request.dataset, since=request.since, limit=request.limit)


def history(call: Call, request: HistoryRequest) -> SchemaHistory:
    return _catalog(call).history(request.dataset, since=request.since, limit=request.limit)


def blame(call: Call, request: BlameRequest) -> BlameResult:
    return _catalog(call).blame(request.dataset)


def compare(call: Call, request: CompareRequest) -> ComparisonResult:
    return _catalog(call).compare(request.dataset, request.first, second=request.second)


def _catalog(call: Call) -> CatalogController:
    from lumos.core.controllers.catalog_controller import CatalogController

    return CatalogController(call.work)


OPERATIONS = {
    SearchRequest: search,
    ShowRequest: show,
    TrendRequest: trend,
    HistoryRequest: history,
    BlameRequest: blame,
    CompareRequest: compare,
}
