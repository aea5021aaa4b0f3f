"""`install_paddle` makes ``import paddle`` mean the engine. Each test runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def run(program, *path):
    """Run `program` in a fresh interpreter with `path` in front of this one's; its output."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def other_paddle(tmp_path):
    """A folder with another package named paddle."""
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("name = 'another'\n")
    return tmp_path


def test_importing_the_engine_registers_nothing():
    assert run("import pylayer, sys; print('paddle' in sys.modules)") == "False"


def test_all_ways_to_import_give_the_same_objects():
    run("""
        import pylayer
        pylayer.install_paddle()
        import paddle
        import paddle.nn.functional as F
        from paddle.autograd import PyLayer, PyLayerContext
        from paddle.autograd.py_layer import PyLayer as again
        import pylayer.paddle, pylayer.layer.py_layer
        assert paddle is pylayer.paddle
        assert F is paddle.nn.functional
        assert PyLayer is again is paddle.autograd.PyLayer is pylayer.layer.py_layer.PyLayer
        assert isinstance(F.relu(paddle.ones([1])), paddle.Tensor)
    """)


def test_installing_twice_is_the_same_as_once():
    run("""
        import pylayer
        pylayer.install_paddle()
        import paddle
        pylayer.install_paddle()
        import sys
        assert sys.modules["paddle"] is paddle
    """)


def test_uninstalling_gives_an_installed_paddle_back(other_paddle):
    run(
        """
        import pylayer
        pylayer.install_paddle()
        import paddle
        assert paddle.Tensor
        pylayer.uninstall_paddle()
        import paddle
        assert paddle.name == "another"
        pylayer.uninstall_paddle()
        import sys
        assert sys.modules["paddle"] is paddle
        """,
        other_paddle,
    )


def test_a_paddle_that_is_imported_already_is_not_replaced(other_paddle):
    run(
        """
        import paddle, pylayer
        try:
            pylayer.install_paddle()
        except RuntimeError as error:
            assert "already imported" in str(error) and paddle.__file__ in str(error)
        else:
            raise SystemExit("no error")
        assert paddle.name == "another"
        """,
        other_paddle,
    )


def test_what_the_release_lacks_too_is_not_found():
    run("""
        import pylayer
        pylayer.install_paddle()
        try:
            import paddle.fluid
        except ModuleNotFoundError as error:
            assert error.name == "paddle.fluid"
        else:
            raise SystemExit("found")
    """)


def test_a_module_imported_from_below_hides_no_function_of_its_name():
    run("""
        import pylayer
        pylayer.install_paddle()
        import paddle
        einsum = paddle.tensor.einsum
        import paddle.tensor.einsum
        assert paddle.tensor.einsum is einsum
        from paddle.tensor.einsum import einsum as again
        assert again is einsum
    """)


def test_uninstalling_takes_stand_ins_away():
    run("""
        import pylayer, sys
        pylayer.install_paddle()
        import paddle.io
        pylayer.uninstall_paddle()
        assert not [name for name in sys.modules if name.startswith("paddle")]
    """)
