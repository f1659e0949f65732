"""The words of a .proto source."""

import re
from typing import Final, NamedTuple

from queuecore.errors import ConfigurationError

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
  | (?P<number>-?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))
  | (?P<name>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<mark>[{}()\[\]<>=;,:/+-])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


class Tokens:
    """One after the other. What is not as expected is a ConfigurationError with its file and line."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self._tokens = _split(file, source)
        self._next = 0

    @property
    def is_over(self) -> bool:
        return self._next >= len(self._tokens) - 1

    def peek(self) -> Token:
        return self._tokens[self._next]

    def take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def skip(self, text: str) -> bool:
        """Take it where it comes next."""
        if self.peek().text != text or self.peek().kind == "text":
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.skip(text):
            raise self.wrong(f"{text!r}")

    def name(self) -> str:
        """With its dots, where it has any."""
        if self.peek().kind != "name":
            raise self.wrong("a name")
        return self.take().text

    def plain_name(self) -> str:
        name = self.name()
        if "." in name:
            raise ConfigurationError(f"{self.file}: {name!r} is to be a name without dots")
        return name

    def whole_number(self) -> int:
        token = self.peek()
        try:
            if token.kind != "number" or len(token.text) > 20:
                raise ValueError
            number = int(token.text, 0) if not re.fullmatch(r"-?0\d+", token.text) else int(token.text, 8)
        except ValueError:
            raise self.wrong("a whole number") from None
        self.take()
        return number

    def text(self) -> str:
        if self.peek().kind != "text":
            raise self.wrong("a text in quotes")
        return self.take().text[1:-1]

    def wrong(self, wanted: str) -> ConfigurationError:
        token = self.peek()
        found = repr(token.text[:40]) if token.kind != "end" else "the end"
        return ConfigurationError(f"{self.file}, line {token.line}: {wanted} is expected, and there is {found}")


def _split(file: str, source: str) -> list[Token]:
    found, position, line = [], 0, 1
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise ConfigurationError(f"{file}, line {line}: {source[position]!r} makes no sense here")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], line))
        line += match[0].count("\n")
        position = match.end()
    return [*found, Token("end", "", line)]
