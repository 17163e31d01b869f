"""Strict YAML: scalars as YAML 1.2 has them, everything surprising or harmful refused, at a place that is named."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigError
from app.run import yaml_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e-3", 0.001), ("1E5", 1e5), ("1.", 1.0), ("012", 12), ("0o17", 15), ("0xfF", 255), ("-0", 0)),
        *(("true", True), ("yes", "yes"), ("on", "on"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01")),
        *(("1_000", "1_000"), ("'1e-3'", "1e-3"), ("~", None), ("=", "=")),
        ("{a: , b: [1, x]}", {"a": None, "b": [1, "x"]}),
        ("%YAML 1.2\n---\na: yes", {"a": "yes"}),
        ("[" * 15 + "1" + "]" * 15, [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text, value):
    assert repr(yaml_text.parse(text, "here").data) == repr(value)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "the key 'a' occurs twice"),
        (
            "a:\n\tb: 1",
            2,
            1,
            "while scanning for the next token, found character that cannot start any token (a tab; ",
        ),
        ("a: b: c", 1, 5, "mapping values are not allowed in this context"),
        ("@", 1, 1, "while scanning for the next token, found character that cannot start any token"),
        ("a: !!python/object:os.system {}", 1, 4, "the tag !!python/object:os.system is not allowed here"),
        ("a: !!int 3", 1, 4, "the tag !!int is not allowed here"),
        ("a: &x [1]\nb: *x", 2, 4, "the alias *x is not allowed here"),
        *(
            (f"a: {number}", 1, 4, f"{number[:40]} is not a finite number of at most 64 bits")
            for number in (".inf", ".nan", "1e999", "9223372036854775808", "9" * 2000)
        ),
        ("1: 2", 1, 1, "a key must be text"),
        ("? [a]\n: 2", 1, 3, "a key must be text"),
        ("a: 1\nb: \x01", 2, 4, "the character U+0001 is not allowed in YAML"),
        ("a: \ud800", 1, 4, "the character U+D800 is not allowed in YAML"),
        ('"\\0"', 1, 1, "text with a null character or half a surrogate pair"),
        *(
            (f'a: "{escape}"', 1, 7, "while parsing a quoted scalar, found invalid Unicode character escape code")
            for escape in ("\\U99999999", "\\ud800")
        ),
        ("%YAML 1.3\n---\n", 1, 1, "found incompatible YAML document"),
        ("a: 1\n---\nb: 2", 2, 1, "expected a single document in the stream"),
        ("[" * 17 + "]" * 17, 1, 17, "nested more than 16 deep"),
    ],
    ids=lambda value: ascii(value[:30]) if isinstance(value, str) else str(value),
)
def test_an_error_has_its_line_and_column(text, line, column, message):
    with pytest.raises(ConfigError) as caught:
        yaml_text.parse(text, "here")
    assert str(caught.value).startswith(f"here: line {line}, column {column}: {message}")


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 900_000, "- " * 400_000, "? " * 400_000, "{a: " * 200_000, "[" + "1," * 400_000, "a:\n" * 300_000),
        *("[" + "?," * 400_000, "!" + "x" * 900_000 + " a", "a" * 1_000_001),
    ],
    ids=lambda text: text[:6],
)
def test_deep_or_big_text_is_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(ConfigError) as caught:
        yaml_text.parse(text, "here")
    assert time.perf_counter() - start < 5
    assert len(str(caught.value)) < 300


def test_a_file_is_utf8_and_may_have_a_byte_order_mark_and_windows_line_ends(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfseed: 1\r\ntrain: 2\r\n")
    assert yaml_text.read(str(file)).data == {"seed": 1, "train": 2}
    file.write_bytes(b"seed: 1\n# \xff")
    with pytest.raises(ConfigError, match=r"a\.yaml: line 2, column 3: the byte 0xff is not UTF-8 text"):
        yaml_text.read(str(file))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SPELLINGS = st.sampled_from(["1e-3", "yes", "null", "~", "", "012", ".inf", "<<", "=", "- a", "a: b", "#", "1_0"])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.recursive(
        st.none() | st.booleans() | NUMBERS | TEXTS | SPELLINGS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | SPELLINGS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_data_that_is_written_reads_back_equal(data):
    assert repr(yaml_text.parse(yaml_text.write(data), "here").data) == repr(data)


SLOW = {
    "keys": "".join(f"k{i}: 1\n" for i in range(8000)),
    "long keys": "".join(f"{f'k{i}':x<40}: 1\n" for i in range(1900)),
    "flow keys": "a:\n" + 90 * f" - {{{', '.join(f'k{i}: 1' for i in range(100))}}}\n",
    "block": "a: |\n" + "  x\n" * 24_000,
    "folded": "a: >\n" + "  x\n\n" * 16_000,
    "comments": "# x\n" * 24_000,
    "blank": "\n" * 99_000,
    "anchors": "".join(f"- &a{i} 1\n" for i in range(9000)),
    "brackets": ("[" * 2400 + "\n") * 40,
    "words": "a: " + ("x " * 1200 + "\n   ") * 40,
    "quoted": 'a: "' + ("x " * 1200 + "\n   ") * 40 + '"',
    "megabyte": "k: 1\n" * 200_000,
}


@pytest.mark.parametrize("name", SLOW)
def test_any_text_is_read_or_refused_within_two_seconds(name):
    start = time.process_time()
    with suppress(ConfigError):
        yaml_text.parse(SLOW[name], "x")
    assert time.process_time() - start < 2
