"""Rows of Python values as Arrow batches."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.spark.stages.arrow_rows import ROWS_PER_BATCH, arrow_array, batches, rows

_VALUES = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.binary(): st.binary(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
}
_COLUMNS = "name string, path binary, size long, is_there boolean"


@pytest.mark.parametrize("kind", _VALUES, ids=str)
@given(data=st.data())
def test_values_become_the_array_that_pyarrow_makes_of_them(
    kind: pa.DataType, data: st.DataObject
) -> None:
    values = tuple(data.draw(st.lists(st.none() | _VALUES[kind], max_size=20)))

    made = arrow_array(values, kind)

    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


def test_rows_come_back_from_batches_of_a_bounded_size() -> None:
    given_rows = [
        (f"n{number}", b"p" * (number % 3), number if number % 2 else None, None)
        for number in range(ROWS_PER_BATCH + 1)
    ]

    made = list(batches(given_rows, _COLUMNS))

    assert [batch.num_rows for batch in made] == [ROWS_PER_BATCH, 1]
    names = ("name", "path", "size", "is_there")
    assert [row for batch in made for row in rows(batch, names)] == given_rows


def test_a_process_that_makes_batches_does_not_load_pandas() -> None:
    code = (
        "import sys; from lumos.spark.stages.arrow_rows import batches;"
        f"list(batches([('a', b'b', 1, True), (None,) * 4], {_COLUMNS!r}));"
        "sys.exit('pandas' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
