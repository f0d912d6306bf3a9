"""Compare DataFrames in tests by what they hold.

`pyspark.testing` takes `map<string,int>` and `map<int,string>` for the same schema, and
`decimal(10,2)` and `decimal(38,0)` too, which a product about schemas cannot afford.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def assert_frames_equal(actual: DataFrame, expected: DataFrame) -> None:
    """Fail unless both have the same columns, of exactly the same types, and the same rows.

    Rows may come in any order, and each must occur as often in one as in the other.
    """
    assert actual.dtypes == expected.dtypes, f"{actual.dtypes} is not {expected.dtypes}"  # noqa: S101
    # By their text: rows with arrays or maps in them cannot be hashed.
    found, wanted = (Counter(map(_text, frame.collect())) for frame in (actual, expected))
    differences = [
        *(f"missing: {row}" for row in (wanted - found).elements()),
        *(f"not expected: {row}" for row in (found - wanted).elements()),
    ]
    assert not differences, "\n".join(differences)  # noqa: S101


def _text(value: object) -> str:
    """Write a value so that equal ones have equal text, maps in any order included."""
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_text(k)}: {_text(v)}' for k, v in value.items()))}}}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    return repr(value)
