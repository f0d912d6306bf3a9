"""Descriptions, tags, terms and properties that people add to datasets."""

from lumos.feature.enrichment.enrichment_service import EnrichmentService as EnrichmentService
