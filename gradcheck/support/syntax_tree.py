"""Queries on a Python syntax tree."""

from __future__ import annotations

import ast


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name: ``PyLayer`` for ``paddle.autograd.PyLayer``; empty for other
    expressions.
    """
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
