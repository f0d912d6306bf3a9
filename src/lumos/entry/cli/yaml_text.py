"""Documents as YAML, in the form that the product documents show them."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue
    from ruamel.yaml.nodes import ScalarNode
    from ruamel.yaml.representer import RoundTripRepresenter

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")
_WIDEST = 4096


class _Moment(str):
    """A time, written without quotes."""

    __slots__ = ()


def yaml_text(document: JsonValue) -> str:
    """Return a JSON document as YAML: lists of plain values on one line, times unquoted."""
    from ruamel.yaml import YAML

    writer = YAML()
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.width = _WIDEST
    writer.allow_unicode = True
    writer.representer.add_representer(_Moment, _represented)
    text = StringIO()
    writer.dump(_prepared(document), text)
    return text.getvalue()


def _represented(representer: RoundTripRepresenter, moment: _Moment) -> ScalarNode:
    node: ScalarNode = representer.represent_scalar("tag:yaml.org,2002:timestamp", str(moment))
    return node


def _prepared(value: object, key: str = "") -> object:
    from ruamel.yaml.comments import CommentedSeq

    if isinstance(value, dict):
        return {name: _prepared(item, name) for name, item in value.items()}
    if isinstance(value, list):
        items = CommentedSeq(_prepared(item) for item in value)
        if not any(isinstance(item, dict | list) for item in value):
            items.fa.set_flow_style()
        return items
    if key == "timestamp" and isinstance(value, str) and _MOMENT.match(value):
        return _Moment(value)
    return value
