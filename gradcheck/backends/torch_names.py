"""The text of a derived backward in torch's names: a table.

Each row has an operation of the engine and its text; see `gradcheck.deriving.dialects`. A name
without a row is torch's function of that name.
"""

from __future__ import annotations

import torch

from gradcheck.backends.base import LibraryNames

CALLS = """
    cast(x, dtype) -> x.to(dtype)
    inside_bounds(x, None, high) -> (x <= high).to(own_dtype)
    inside_bounds(x, low, None) -> (x >= low).to(own_dtype)
    inside_bounds(x, low, high) -> ((x >= low) & (x <= high)).to(own_dtype)
    tie_share(a, b) -> (a > b).to(own_dtype) + 0.5 * (a == b).to(own_dtype)
    matrix_transpose(x) -> x.T              if x.ndim == 2
    matrix_transpose(x) -> x.mT
    transpose(x, perm) -> x.permute(plain_list(perm))
    reshape(x, shape) -> x.unsqueeze(new_axes(x, shape))  if type(new_axes(x, shape)) is int
    reshape(x, shape) -> x.reshape(shape)
    broadcast_to(x, shape) -> x.expand(shape)
    sum(x, axis, dtype, keepdim) -> x.sum(dim=short(axis, x), keepdim=keepdim)
    mean(x, axis, keepdim) -> x.mean(dim=short(axis, x), keepdim=keepdim)
    max(x, axis, keepdim) -> x.amax(dim=short(axis, x), keepdim=keepdim)
    min(x, axis, keepdim) -> x.amin(dim=short(axis, x), keepdim=keepdim)
    cumsum(x, axis, dtype) -> x.cumsum(short(axis, x))
    flip(x, axis) -> x.flip(short(axis, x))
    norm(x, axis, keepdim) -> torch.linalg.vector_norm(x, dim=short(axis, x), keepdim=keepdim)
    softmax(x, axis) -> torch.softmax(x, short(axis, x))
    log_softmax(x, axis) -> torch.log_softmax(x, short(axis, x))
    clip(x, min, max) -> x.clamp(min, max)
    where(c, k, n) -> torch.where(c, k, n).to(own_dtype)
    where(c, x, y) -> torch.where(c, x, y)
    where(c, a, b) -> torch.where(c, a, b)
    einsum_explicit(operands, equation) -> torch.einsum(equation, *operands)
    concat(parts, axis, bounds) -> torch.cat(parts, short(axis, parts[0]))
    stack(parts, axis) -> torch.stack(parts, axis)
    split(x, ends, axis) -> x.tensor_split(plain_list(ends), axis)[output]
    getitem(x, index) -> x.gather(position_axis(index), positions(index))  if positions(index) is not None
    getitem(x, index) -> x[index]
    setitem(x, index, value) -> out = x.clone(); out[index] = value
    scatter_sum(g, shape, index) -> zeros(shape).scatter_add(position_axis(index), positions(index), g)  if positions(index) is not None
    scatter_sum(g, shape, index) -> out = zeros(shape); out[index] = g  if is_once(index)
    scatter_sum(g, shape, index) -> zeros(shape).index_add(along_rows(index), first_row(index), g)  if along_rows(index) is not None
    scatter_sum(g, shape, index) -> zeros(shape).index_put(rows(index), g, accumulate=True)
    zeros(shape) -> torch.zeros_like(whole(shape))  if whole(shape)
    zeros(shape) -> torch.zeros(shape, dtype=own_dtype)
"""  # noqa: E501 - a row is a line

TORCH_NAMES = LibraryNames(
    "torch",
    CALLS,
    {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.linalg": torch.linalg},
    element_count="{}.numel()",
    saved="ctx.saved_tensors",
)
