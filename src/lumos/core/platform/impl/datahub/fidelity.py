"""How well DataHub keeps each concept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.platform.fidelity import Fidelity

_N, _T, _S = Fidelity.NATIVE, Fidelity.TRANSFORMED, Fidelity.STASHED
FIDELITY: Final[Mapping[str, Fidelity]] = {
    "dataset": _N, "kind": _T, "environment": _S, "format": _S, "location": _S,
    "field": _N, "nested_field": _N, "field_description": _N, "field_default": _S,
    "field_pii": _S, "field_tag": _N, "field_term": _N, "field_property": _S,
    "field_deprecation": _S, "primary_key": _N, "unique_key": _S, "foreign_key": _N, "check": _S,
    "owner": _N, "tag": _N, "term": _N, "domain": _N, "deprecation": _N, "governance": _S,
    "description": _N, "documentation": _S, "link": _N, "property": _T, "assertion": _T,
    "statistics": _T, "profile": _T, "quality": _T, "cost": _S, "version": _S, "extension": _S,
    "lineage_edge": _N, "column_lineage": _N, "job": _N, "user": _N, "group": _N,
    "tag_definition": _N, "glossary_term": _N, "domain_definition": _N, "identity": _S,
    "catalog_extension": _S,
}  # fmt: skip
"""Nothing is dropped: what DataHub has no place for travels in a separate property."""
