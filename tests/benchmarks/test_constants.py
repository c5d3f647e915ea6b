"""The list of constants of which a test must fail if they are a tenth smaller."""

import pytest

from benchmarks.constants import CONSTANTS, CORE, ROOT


@pytest.mark.parametrize("constant", CONSTANTS)
def test_every_constant_is_found_once_where_the_list_says(constant):
    source = (ROOT / CORE / constant.file).read_text(encoding="utf-8")
    assert source.count(constant.line) == 1
    assert constant.smaller != constant.line
    assert (ROOT / constant.tests).exists()
