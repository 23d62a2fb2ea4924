"""What pyarrow reads of a block is what the definition reads, line by line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from differential.jobs.input import parse
from differential.jobs.input.blocks import BLOCK
from differential.jobs.input.faults import Fault, Faults
from differential.jobs.input.form import Form, InputColumn, Kind
from differential.jobs.input.layout import BLANKS
from differential.jobs.input.parse import Parser

ROWS = [
    (InputColumn("source", 0, "integer"), InputColumn("target", 1, "integer")),
    (InputColumn("source", 0, "name"), InputColumn("target", 1, "name")),
    (InputColumn("source", 1, "integer"), InputColumn("target", 2, "integer"), InputColumn("weight", 0, "float")),
    (InputColumn("source", 0, "name"), InputColumn("target", 2, "name"), InputColumn("weight", 1, "integer")),
    (
        InputColumn("epoch", 0, "integer"),
        InputColumn("sign", 1, "sign"),
        InputColumn("source", 2, "name"),
        InputColumn("target", 3, "name"),
    ),
]
FIELD: dict[Kind, st.SearchStrategy[bytes]] = {
    "integer": st.sampled_from([b"1", b"-20", b"007", b"9223372036854775807"]),
    "float": st.sampled_from([b"1", b"-2.5", b"+3e2", b".5", b"1e-400"]),
    "name": st.sampled_from([b"a", b"0x1f", b"\xc3\xa9", b'"b"', b"c#", b"http://x", b"-"]),
    "sign": st.sampled_from([b"+", b"-"]),
}
ODD: dict[Kind, st.SearchStrategy[bytes]] = {
    "integer": st.sampled_from([b"", b"+3", b"0x1f", b"9223372036854775808", b"1_0", b"1.0", b"\r1", b"\xc2\xa01"]),
    "float": st.sampled_from([b"", b"nan", b"-inf", b"1e999", b"0x1f", b"1_0", b"\xff"]),
    "name": st.sampled_from([b"", b"\xff", b"a\rb", b"\ra", b"#", b"\0", b"\xc2\xa0", b"\xef\xbb\xbf"]),
    "sign": st.sampled_from([b"", b"*", b"+-", b"1"]),
}
BLANK = st.sampled_from([b"", b"", b"", b" ", b"\t", b"  "])
END = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"\n# comment\n", b"\n \t// comment\n", b"\n  \n"])


@st.composite
def block(draw: Any, form: Form) -> bytes:
    """Draw lines that have a form, except for a few fields."""
    padding = BLANK if form.separator not in ("\t", " ") else st.just(b"")
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        fields = [b"0"] * form.width
        for column in form.columns:
            fields[column.place] = draw(padding) + draw(FIELD[column.kind]) + draw(padding)
        rows.append(fields)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 3]))):
        column = draw(st.sampled_from(form.columns))
        draw(st.sampled_from(rows))[column.place] = draw(ODD[column.kind])
    if draw(st.integers(0, 9)) == 0:
        draw(st.sampled_from(rows)).pop()
    separator = b" \t " if form.separator == BLANKS else form.separator.encode()
    whole = b"".join(separator.join(fields) + draw(END) for fields in rows)
    return whole if draw(st.booleans()) else whole.removesuffix(b"\n")


def parsed(data: bytes, form: Form, patch: pytest.MonkeyPatch, small: int, piece: int) -> tuple[Any, list[Fault]]:
    patch.setattr(parse, "SMALL", small)
    patch.setattr(parse, "PIECE", piece)
    faults = Faults("report")
    rows = Parser("text", form, faults, with_lines=True).parse(data, lambda: 100)
    columns = {
        role: [*map(repr, column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())]
        for role, column in rows.columns.items()
    }
    assert rows.lines is not None
    return (columns, rows.lines.tolist()), faults.take()


@pytest.mark.parametrize("columns", ROWS)
@pytest.mark.parametrize("separator", ["\t", ",", " ", BLANKS])
@given(data=st.data())
def test_blocks_are_read_as_their_lines_are(
    columns: tuple[InputColumn, ...], separator: str, data: st.DataObject
) -> None:
    form = Form(separator, max(column.place for column in columns) + 1, columns)
    text = data.draw(block(form))
    with pytest.MonkeyPatch.context() as patch:
        expected = parsed(text, form, patch, BLOCK, BLOCK)
        assert parsed(text, form, patch, 0, BLOCK) == expected
        assert parsed(text, form, patch, 0, 40) == expected


@pytest.mark.parametrize("before", [b"", b"# comment\n", b"  "])
def test_a_byte_order_mark_inside_of_a_text_is_part_of_its_line(before: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form(BLANKS, 2, ROWS[1])
    for small in (0, BLOCK):
        (columns, _), _ = parsed(before + b"\xef\xbb\xbfa b\n", form, monkeypatch, small, BLOCK)
        assert columns["source"] == [repr("\ufeffa")]
