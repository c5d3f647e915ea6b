"""The grammar of model formulas: what may be in one, and how large it may become.

    sum       [+-] product {(+|-) product}
    product   joint {(*|/) joint}             a*b is a + b + a:b
    joint     power {: power}
    power     name | name ** k | number | (sum) | function(arithmetic)

k is a whole number from 1 to 6, and `^` is another way to write `**`. The arithmetic in a function has
+ - * / and powers of names. Everything is checked and counted before anything is evaluated: anyone may
have written a formula, and a short one can ask for more memory than there is.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.plan import Plan

FUNCTIONS = ("log", "exp", "sqrt", "abs")
TOKEN = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)|(\d+\.?\d*)|(\*\*|[-+*/:()^])|\s+")
POWERS = ("**", "^")
LONGEST = 1000  # characters
DIGITS = 15  # of a number
HIGHEST = 6  # power
DEEPEST = 20  # brackets within each other
MOST_TERMS = 100
MOST_COLUMNS = 1000  # of features; a word has one for each of its levels
MOST_ROWS = 200_000  # candidates times the ends of the contexts that are named


class Token(NamedTuple):
    """A piece of a formula."""

    kind: str  # "name", "function", "number" or "sign"
    text: str  # a name without its quotes


class Size(NamedTuple):
    """How much a formula, or a part of it, becomes."""

    terms: int
    columns: int


def tokens_of(formula: str, names: Sequence[str]) -> list[Token]:
    """The pieces of a formula; InputError for anything but these names, numbers and signs."""
    found: list[Token] = []
    place = 0
    while place < len(formula):
        token = TOKEN.match(formula, place)
        if token is None:
            raise InputError(
                f"a model formula must have names, numbers and + - * / : ( ) only, got {formula!r:.200}"
            )
        place = token.end()
        name = token[1] or token[2]
        if name and name not in names and (token[1] or name not in FUNCTIONS):
            raise InputError(
                f"a model formula must use {', '.join(sorted(names))} and "
                f"{', '.join(FUNCTIONS)}, got {name!r}"
            )
        if name:
            found.append(Token("name" if name in names else "function", name))
        elif token[3] or token[4]:
            found.append(Token("number" if token[3] else "sign", token[3] or token[4]))
    return found


def check_model(plan: Plan) -> None:
    """Raise one sentence if the formula of a new study cannot be used, before it is evaluated."""
    formula, factors = str(plan.model), [*plan.factors, *plan.context]
    if len(formula) > LONGEST:
        raise InputError(
            f"a model formula must have at most {LONGEST} characters, got {len(formula)}"
        )
    tokens = tokens_of(formula, [factor.name for factor in factors])
    Reader(tokens, factors).formula()
    menu = plan.candidates
    rows = (3 ** len(plan.factors) if menu.is_box else len(menu)) * math.prod(
        len(factor.grid) if factor.is_category else 2 for factor in named_contexts(plan)
    )
    if rows > MOST_ROWS:
        raise InputError(
            f"a model formula must have at most {MOST_ROWS:,} rows, the candidates times the ends of "
            f"the contexts that it names, got {rows:,}"
        )


def named_contexts(plan: Plan) -> list[Factor]:
    """The factors of the context that the formula names."""
    names = [factor.name for factor in (*plan.factors, *plan.context)]
    named = {token.text for token in tokens_of(str(plan.model), names) if token.kind == "name"}
    return [factor for factor in plan.context if factor.name in named]


def with_real_powers(formula: str, names: Sequence[str]) -> str:
    """The formula with its powers as arithmetic: for the parser alone, x**2 is x."""
    tokens = tokens_of(formula, names)
    if not any(token.text in POWERS for token in tokens):
        return formula
    written: list[str] = []
    depths = [0]  # brackets that are open within each function
    for place, (kind, text) in enumerate(tokens):
        if kind == "function":
            depths.append(0)
        elif text in "()" and len(depths) > 1:
            depths[-1] += 1 if text == "(" else -1
            if depths[-1] == 0:
                depths.pop()
        if place and tokens[place - 1].text in POWERS and len(depths) == 1:
            written[-2:] = [f"{{{written[-2]}**{text}}}"]
        elif text in POWERS and kind == "sign" and len(depths) > 1:
            written.append("**")
        elif place and tokens[place - 1].kind == "function":
            written[-1] += text  # its bracket
        else:
            written.append(f"`{text}`" if kind == "name" else text)
    return " ".join(written)


class Reader:
    """Reads the pieces of a formula from left to right, and counts what it becomes."""

    def __init__(self, tokens: list[Token], factors: Sequence[Factor]) -> None:
        self._tokens, self._place, self._depth = tokens, 0, 0
        self._factors = {factor.name: factor for factor in factors}

    def formula(self) -> Size:
        """The size of the whole formula."""
        size = self._sum()
        if self._place < len(self._tokens):
            raise _unexpected(self._tokens[self._place])
        return size

    def _sum(self) -> Size:
        self._take("+", "-")
        size = self._product()
        while self._take("+", "-"):
            size = self._bounded(_added(size, self._product()))
        return size

    def _product(self) -> Size:
        size = self._joint()
        while sign := self._take("*", "/"):
            other = self._joint()
            joined = _joined(size, other)
            size = self._bounded(_added(_added(size, other) if sign == "*" else size, joined))
        return size

    def _joint(self) -> Size:
        size = self._power()
        while self._take(":"):
            size = self._bounded(_joined(size, self._power()))
        return size

    def _power(self) -> Size:
        token = self._next()
        if token.kind == "function":
            self._bracket(self._arithmetic)
            size = Size(1, 1)
        elif token == Token("sign", "("):
            self._place -= 1
            size = self._bracket(self._sum)
        elif token.kind == "name":
            factor = self._factors[token.text]
            size = Size(1, len(factor.grid) if factor.is_category else 1)
        elif token.kind == "number":
            _check_number(token.text)
            size = Size(1, 1)
        else:
            raise _unexpected(token)
        self._exponent(token)
        return size

    def _arithmetic(self) -> Size:
        """What a function is applied to: numbers that are evaluated as they stand."""
        while True:
            while self._take("+", "-"):
                pass
            token = self._next()
            if token.kind == "function":
                self._bracket(self._arithmetic)
            elif token == Token("sign", "("):
                self._place -= 1
                self._bracket(self._arithmetic)
            elif token.kind == "number":
                _check_number(token.text)
            elif token.kind != "name":
                raise _unexpected(token)
            self._exponent(token)
            if not self._take("+", "-", "*", "/"):
                return Size(1, 1)

    def _bracket(self, inside: Callable[[], Size]) -> Size:
        if not self._take("("):
            raise _unreadable("a function without a bracket")
        self._depth += 1
        if self._depth > DEEPEST:
            raise InputError(
                f"a model formula must have at most {DEEPEST} brackets in each other, got more"
            )
        size = inside()
        self._depth -= 1
        if not self._take(")"):
            raise _unreadable("a bracket that is not closed")
        return size

    def _exponent(self, base: Token) -> None:
        """The power of what was just read, if there is one."""
        if not self._take(*POWERS):
            return
        exponent = self._tokens[self._place].text if self._place < len(self._tokens) else ""
        if base.kind != "name":
            raise InputError(
                "a power in a model formula must be of a single name, as in dose**2, got one of "
                + (base.text if base.kind == "number" else "brackets")
            )
        if self._factors[base.text].is_category:
            raise InputError(f"a power must be of a number, got {base.text!r}, which is a word")
        if not exponent.isdecimal() or len(exponent) > 1 or not 1 <= int(exponent) <= HIGHEST:
            raise InputError(
                f"a power in a model formula must be a whole number from 1 to {HIGHEST}, got "
                f"{exponent[:20] or 'none'}"
            )
        self._place += 1
        if self._take(*POWERS):
            raise InputError("a power in a model formula must be of a name, got a power of a power")

    def _bounded(self, size: Size) -> Size:
        for count, most, what in (
            (size.terms, MOST_TERMS, "terms"),
            (size.columns, MOST_COLUMNS, "features"),
        ):
            if count > most:
                raise InputError(
                    f"a model formula must have at most {most} {what}, got {count} or more"
                )
        return size

    def _take(self, *signs: str) -> str:
        """The next piece, if it is one of these signs; then it is read."""
        if self._place < len(self._tokens):
            token = self._tokens[self._place]
            if token.kind == "sign" and token.text in signs:
                self._place += 1
                return token.text
        return ""

    def _next(self) -> Token:
        if self._place == len(self._tokens):
            raise _unreadable()
        self._place += 1
        return self._tokens[self._place - 1]


def _added(one: Size, other: Size) -> Size:
    return Size(one.terms + other.terms, one.columns + other.columns)


def _joined(one: Size, other: Size) -> Size:
    return Size(one.terms * other.terms, one.columns * other.columns)


def _check_number(text: str) -> None:
    if len(text.replace(".", "")) > DIGITS:
        raise InputError(
            f"a number in a model formula must have at most {DIGITS} digits, got {text:.20}..."
        )


def _unreadable(where: str = "an end where more must follow") -> InputError:
    return InputError(f"model must be a formula such as 0 + dose + dose:age, got {where:.60}")


def _unexpected(token: Token) -> InputError:
    return _unreadable(f"{token.text!r:.50} where it cannot be")
