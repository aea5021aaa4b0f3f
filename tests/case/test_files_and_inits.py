"""Inputs from files, and values of a kind: `from`, `range`, `below`, and the named inits."""

from __future__ import annotations

import numpy as np
import pytest

from gradcheck.case.input_arrays import NoInputError, make_input
from gradcheck.spec.model import Input


def made(folder=None, seed=0, dtype="float64", **fields):
    """An input as a scenario describes it."""
    spec = Input.model_validate({key.rstrip("_"): value for key, value in fields.items()}, strict=False)
    return make_input(spec, dtype, np.random.default_rng(seed), *([folder] if folder else []))


def test_range_is_short_for_uniform_limits():
    values = made(shape=[200], range=[0.5, 2])
    assert 0.5 <= values.min() < 0.7
    assert 1.8 < values.max() < 2


def test_below_is_short_for_whole_numbers_from_0():
    assert set(made(shape=[200], below=3, dtype="int64")) == {0, 1, 2}
    assert set(made(shape=[50], below=2, dtype="bool")) == {False, True}


def test_sorted_values_rise_along_the_last_axis():
    assert (np.diff(made(shape=[4, 9], init="sorted")) >= 0).all()


def test_distinct_values_are_a_sixteenth_apart():
    values = np.sort(made(shape=[6, 7], init="distinct").ravel())
    assert np.diff(values).min() > 1 / 16


def test_ties_are_few_different_numbers():
    assert len(np.unique(made(shape=[50], init="ties"))) == 4


def test_positive_definite_matrices_are():
    values = made(shape=[5, 4, 4], init="positive-definite")
    np.testing.assert_allclose(values, values.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(values).min() > 0.9


@pytest.mark.parametrize("shape", [[3, 3], [5, 3], [2, 4, 4]])
def test_orthogonal_matrices_have_orthonormal_columns(shape):
    values = made(shape=shape, init="orthogonal")
    np.testing.assert_allclose(
        values.swapaxes(-1, -2) @ values, np.eye(shape[-1]) + np.zeros([*shape[:-2], 1, 1]), atol=1e-12
    )


def test_one_hot_rows_have_a_single_one():
    values = made(shape=[7, 4], init="one-hot")
    assert ((values == 0) | (values == 1)).all()
    assert (values.sum(-1) == 1).all()


def test_probabilities_are_above_0_with_sum_1():
    values = made(shape=[3, 5], init="probabilities")
    assert (values > 0).all()
    np.testing.assert_allclose(values.sum(-1), 1)


# --------------------------------------------------------------------------- files
def test_a_file_below_the_spec_has_the_values(tmp_path):
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", np.arange(6.0).reshape(2, 3))
    np.savez(tmp_path / "data.npz", x=np.arange(3), y=np.ones(2))
    np.testing.assert_array_equal(made(tmp_path, from_="data/x.npy"), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(made(tmp_path, from_="data.npz", key="x", dtype="int64"), np.arange(3))


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        ("missing.npy", None, "missing.npy: No such file"),
        ("../outside.npy", None, "npy leads out of .*/specs: copy the file there"),
        ("link.npy", None, "npy leads out of .*/specs: copy the file there"),
        ("text.npy", None, "is not a file written by np.save or np.savez"),
        ("pickle.npy", None, "is not a file written by np.save or np.savez"),
        ("data.npz", "z", "data.npz has no 'z': it has x, y"),
        ("words.npy", None, "holds no array of numbers"),
        ("complex.npy", None, "give the input 'dtype: complex128'"),
    ],
)
def test_a_file_without_the_values_is_said_to_be_so(tmp_path, name, key, said):
    folder = tmp_path / "specs"
    folder.mkdir()
    np.save(tmp_path / "outside.npy", np.ones(2))
    (folder / "link.npy").symlink_to(tmp_path / "outside.npy")
    (folder / "text.npy").write_text("1, 2")
    np.save(folder / "pickle.npy", np.array([{}], object), allow_pickle=True)
    np.save(folder / "words.npy", np.array(["a"]))
    np.save(folder / "complex.npy", np.array([1j]))
    np.savez(folder / "data.npz", x=np.arange(3), y=np.ones(2))
    with pytest.raises(NoInputError, match=said):
        made(folder, from_=name, **({"key": key} if key else {}))
