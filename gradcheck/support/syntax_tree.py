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


def reads_saved_tensors(node: ast.AST) -> bool:
    """Whether an expression reads all Tensors that forward saved: by a method of the context in
    Paddle, by an attribute in torch.
    """
    reader = node.func if isinstance(node, ast.Call) else node
    return isinstance(reader, ast.Attribute) and reader.attr in ("saved_tensor", "saved_tensors")
