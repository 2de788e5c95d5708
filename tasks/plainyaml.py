"""YAML as a spec needs it: plain data, every number as it was written, and nothing that can surprise or explode."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import yaml

_DEPTH = 32
_LONG = 1 << 16
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null")}
_TEXT = {f"tag:yaml.org,2002:{kind}" for kind in ("timestamp", "value")}
"""What YAML would read into `2024-01-01` and `=`; here they are text."""
_MERGE = "tag:yaml.org,2002:merge"


class _Written:
    """A number that remembers its spelling: `007` as a value is three signs, not 7."""

    written: str

    def __str__(self) -> str:
        return self.written

    __repr__ = __str__


class _Int(_Written, int):
    pass


class _Float(_Written, float):
    pass


class _Plain(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """No tags beyond plain data, no merging (it multiplies), no key twice (the first would be lost)."""

    yaml_constructors = {tag: build for tag, build in yaml.SafeLoader.yaml_constructors.items() if tag in _PLAIN} | {
        None: lambda _, node: _no_tag(node)
    }
    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in rules if tag not in _TEXT]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0
    peek_event: Callable[[], Any]

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            raise yaml.composer.ComposerError(None, None, f"nested deeper than {_DEPTH}", self._mark())
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def _mark(self) -> Any:
        return self.peek_event().start_mark

    def flatten_mapping(self, node: Any) -> None:
        for key, _ in node.value:
            if key.tag == _MERGE:
                raise _refusal("merging with << is not read: write the keys out", key)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=True)
        if len(mapping) < len(node.value):
            seen: set[Any] = set()
            for key, _ in node.value:
                name = self.construct_object(key)
                if name in seen:
                    raise _refusal("a key stands there twice", key)
                seen.add(name)
        return mapping

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            spelled = isinstance(node, yaml.ScalarNode) and type(value) in (int, float) and str(value) != node.value
        except (ValueError, LookupError, AttributeError, OverflowError):
            # `!!int x`, or a number of thousands of digits: the library lets Python's own errors through.
            raise _refusal("this is not a value of its kind", node) from None
        if spelled:
            value = (_Int if type(value) is int else _Float)(value)
            value.written = node.value
        return value


class _Loader(_Plain, yaml.SafeLoader):
    """With the library's own scanner, whose words we know."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)


_Quick: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _QuickLoader(_Plain, _Quick):  # type: ignore[misc]  # what it is depends on the machine
    """With libyaml's, where it is there: a spec of thousands of profiles has megabytes."""

    def __init__(self, text: str) -> None:
        _Quick.__init__(self, text)
        yaml.composer.Composer.__init__(self)


def _refusal(problem: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _no_tag(node: Any) -> Any:
    raise _refusal("tags (with `!`) are not read: write plain text, numbers, lists and mappings", node)


@lru_cache(maxsize=2)
def load(text: str) -> Any:
    """The one document of a text, not to be changed; raises yaml.YAMLError, whose mark tells where.

    A command asks several times: of what kind a spec is, whether it is valid, and for the run itself.
    """
    if len(text) > _LONG:
        try:
            return _read(_QuickLoader(text))
        except yaml.YAMLError:
            pass  # told in the words of the other one
    return _read(_Loader(text))


def _read(loader: Any) -> Any:
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
