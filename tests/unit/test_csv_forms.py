"""A file that is recognised by its form says the same as one that is read anew."""

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import UnreadableItemError
from lumos.core.formats import csv_text
from lumos.core.formats.csv_forms import KnownForms
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file

_SHOWING = csv_text.SHOWING_ROWS
_VALUES = {
    "number": st.integers(-(10**19), 10**19).map(str),
    "price": st.one_of(st.floats(allow_nan=False).map(str), st.integers(0, 99).map(str)),
    "flag": st.sampled_from(("true", "false", "TRUE", "False", "tRUE")),
    "day": st.sampled_from(("2024-02-29", "2023-02-29", "2000-02-29", "1900-02-29", "2024-12-31")),
    "moment": st.sampled_from(("2024-01-01T10:00:00", "2024-01-01 23:59", "2024-01-01")),
    "instant": st.sampled_from(("2024-01-01T10:00:00Z", "2024-01-01 10:00:00.5+02:00")),
    "word": st.one_of(
        st.sampled_from(("ab", "x-1", "NA", "null", " padded ", "0123", "#1", "word")),
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5),
    ),
}


@pytest.fixture(autouse=True)
def forms(monkeypatch: pytest.MonkeyPatch) -> KnownForms:
    fresh = KnownForms(_SHOWING)
    monkeypatch.setattr(csv_text, "_FORMS", fresh)
    return fresh


def _read(content: str, *, name: str = "a.csv") -> FileFacts | str:
    data = content.encode()
    try:
        return read_file(io.BytesIO(data), size=len(data), name=name)
    except UnreadableItemError as error:
        return str(error)


def _read_anew(content: str, *, name: str = "a.csv") -> FileFacts | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_FORMS", KnownForms(_SHOWING))
        return _read(content, name=name)


def _is_recognised(content: str, forms: KnownForms) -> bool:
    return forms.recognise(content, whole=True) is not None


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, delimiter: str = ",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in (header, *rows))


@st.composite
def _columns(draw: st.DrawFn) -> list[str]:
    return draw(st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, max_size=5))


@st.composite
def _body(draw: st.DrawFn, columns: Sequence[str]) -> list[list[str]]:
    count = draw(st.sampled_from((1, 2, 5, 49, 99, 100, 101, 130)))
    few = [
        [draw(st.one_of(st.just(""), _VALUES[kind])) for kind in columns]
        for _ in range(min(count, 5))
    ]
    return [few[place % len(few)] for place in range(count)]


@given(data=st.data())
def test_a_file_like_others_says_what_it_says_when_it_is_read_anew(data: st.DataObject) -> None:
    columns = data.draw(_columns())
    header = [f"{kind}_{place}" for place, kind in enumerate(columns)]
    delimiter = data.draw(st.sampled_from((",", ";", "\t")))
    files = [
        _table(header, data.draw(_body(columns)), delimiter=delimiter)
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    end = data.draw(st.sampled_from(("", "\n", " ", "cut,off", "\r\n", '"')))
    name = data.draw(st.sampled_from(("a.csv", "a.txt", "a")))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_FORMS", KnownForms(_SHOWING))
        for content in [*files, *files, *files]:
            _read(content)
        told = [_read(content + end, name=name) for content in files]

    assert told == [_read_anew(content + end, name=name) for content in files]


_HEADER = "id,at,amount,name,ok\n"
_ROW = "1,2024-05-01T10:00:00Z,1.5,word,true\n"


def _learnt() -> None:
    for _ in range(3):
        _read(_HEADER + _ROW * 4)


def test_the_third_file_of_a_form_is_recognised(forms: KnownForms) -> None:
    content = _HEADER + "2,,7.25,other,\n3,2024-02-29T10:00:00Z,,,false\n"
    assert not _is_recognised(content, forms)
    _learnt()
    assert _is_recognised(content, forms)
    assert _read(content) == _read_anew(content)


@pytest.mark.parametrize(
    "row",
    [
        "x,2024-05-01T10:00:00Z,1.5,word,true",
        "1,2024-02-30T10:00:00Z,1.5,word,true",
        "1,2024-05-01T10:00:00Z,abc,word,true",
        "1,2024-05-01T10:00:00Z,1.5,,true",
        "1,2024-05-01T10:00:00Z,1.5,42,true",
        "1,2024-05-01T10:00:00Z,1,word,true",
        '1,2024-05-01T10:00:00Z,1.5,"a,b",true',
        "1,2024-05-01T10:00:00Z,1.5,word,true,more",
        "1,2024-05-01T10:00:00Z,1.5,word",
        "1,2024-05-01T10:00:00Z,1.5,a;b;c,true",
        "#1,2024-05-01T10:00:00Z,1.5,word,true",
        "01,2024-05-01T10:00:00Z,1.5,word,true",
        "9999999999999999999,2024-05-01T10:00:00Z,1.5,word,true",
        ",,,,",
        "",
    ],
)
def test_a_file_that_differs_is_read_anew(row: str, forms: KnownForms) -> None:
    _learnt()
    content = _HEADER + f"{row}\n" * 3
    assert not _is_recognised(content, forms)
    assert _read(content) == _read_anew(content)


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 5_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_rows_are_counted_as_when_read_anew(rows: int, end: str) -> None:
    _learnt()
    content = (_HEADER + _ROW * rows).removesuffix("\n") + end
    assert _read(content) == _read_anew(content)


def test_lines_may_end_as_on_windows(forms: KnownForms) -> None:
    _learnt()
    content = (_HEADER + _ROW * 3).replace("\n", "\r\n")
    for _ in range(3):
        assert _read(content) == _read_anew(content)
    assert _is_recognised(content, forms)


def test_a_header_over_words_alone_is_never_taken_for_granted(forms: KnownForms) -> None:
    content = "first,second\n" + "a,b\n" * 5
    for _ in range(3):
        _read(content)
    assert not _is_recognised(content, forms)
    assert _read("first,second\nfirst,b\n") == _read_anew("first,second\nfirst,b\n")


def test_a_header_may_have_several_forms(forms: KnownForms) -> None:
    one, two = _HEADER + _ROW * 3, _HEADER + "x,,1.5,word,true\n" * 3
    for content in [one, two] * 3:
        _read(content)
    assert _is_recognised(one, forms)
    assert _is_recognised(two, forms)
    assert [_read(one), _read(two)] == [_read_anew(one), _read_anew(two)]


def test_forms_of_many_headers_are_forgotten(forms: KnownForms) -> None:
    _learnt()
    for place in range(2_100):
        _read(f"id_{place},name\n1,word\n")
    assert not _is_recognised(_HEADER + _ROW, forms)
    assert len(forms) <= 2_000
