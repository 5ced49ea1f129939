"""Numbers as programs print them in several locales."""

import pytest

from dse.base.printed_numbers import decimal_comma, printed_number


@pytest.mark.parametrize(
    ("texts", "others", "comma"),
    [
        (["59.07", "111.30"], [], False),
        (["59,07", "1.111,30"], [], True),
        (["59,1"], ["88.1"], True),
        (["1,234", "992"], [], False),  # thousands
        (["1,234"], ["59,07"], True),
        (["5.907"], ["59,07"], True),
        (["1,234,567"], ["59,07"], False),
        (["1.234.567"], [], True),
        (["0,123"], [], True),
        (["59,07", "1.5"], [], None),
        (["5.92e+03"], [], False),
        (["12"], [], False),
    ],
)
def test_a_column_says_what_its_comma_is(texts, others, comma):
    assert decimal_comma(texts, others) is comma


@pytest.mark.parametrize(
    ("text", "comma", "number"),
    [
        ("1,234.5", False, 1234.5),
        ("1.234,5", True, 1234.5),
        ("1 234,5", True, 1234.5),
        ("1\u202f234,5", True, 1234.5),
        ("1'234.5", False, 1234.5),
        ("5.92e+03", False, 5920.0),
        ("59,07", True, 59.07),
        ("-3", False, -3.0),
    ],
)
def test_printed_numbers(text, comma, number):
    assert printed_number(text, comma) == number


@pytest.mark.parametrize(("text", "comma"), [("59,07", False), ("12,34,567", False), ("x", True), ("", False)])
def test_what_is_no_number(text, comma):
    with pytest.raises(ValueError, match=r"number|convert"):
        printed_number(text, comma)
