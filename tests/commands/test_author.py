"""check, new and init: a layer of one's own without knowing the format."""

from __future__ import annotations

import json
import tomllib

import pytest

from gradcheck.spec.read import read_bytes

LAYERS = """
import paddle
from paddle.autograd import PyLayer


class Scale(PyLayer):
    @staticmethod
    def forward(ctx, x, w, times=2.0):
        ctx.save_for_backward(x, w)
        ctx.times = times
        return x * w * times

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy * w * FACTOR, dy * x * ctx.times


def double(x):
    return 2 * x


class Plain:
    pass


class Again(Scale):
    pass
"""


@pytest.fixture
def package(folder):
    """A package with layers, in the current folder."""
    (folder / "own_package").mkdir()
    (folder / "own_package" / "__init__.py").touch()

    def written(factor: str = "ctx.times") -> None:
        (folder / "own_package" / "layers.py").write_text(LAYERS.replace("FACTOR", factor))

    (folder / "own_package" / "broken.py").write_text("import paddle\nclass Scale(paddle\n")
    written()
    return written


def test_a_layer_is_checked_by_its_name(gradcheck, package):
    done = gradcheck("check", "own_package.layers:Scale", "-i", "x=2x3", "--input", "w=2x3")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("PASS scale@numpy own_package.layers:Scale:6:1 ")


def test_a_layer_may_have_its_forward_from_a_base_in_its_file(gradcheck, package):
    done = gradcheck("check", "own_package.layers:Again", "-i", "x=2x3", "-i", "w=2x3")
    assert (done.code, done.err) == (0, "")


def test_a_wrong_one_has_its_panel_and_its_command(gradcheck, package):
    package("1")
    done = gradcheck("check", "own_package.layers:Scale", "-i", "x=2x3", "-i", "w=2x3:float32")
    assert done.code == 1
    assert "gradient of x: 6 of 6 entries wrong" in done.out
    assert "own_package/layers.py:11 │ return x * w * times" in done.out
    assert "  again: gradcheck " in done.out


def test_what_a_wrong_one_printed_is_shown(gradcheck, package, folder):
    package("1")
    layers = folder / "own_package" / "layers.py"
    layers.write_text(
        layers.read_text().replace("        ctx.times = times", "        ctx.times = times; print('seen')")
    )
    done = gradcheck("check", "own_package.layers:Scale", "-i", "x=2x3", "-i", "w=2x3")
    assert done.code == 1
    assert "    last output:\n      seen\n" in done.out


@pytest.mark.parametrize("gives", ["oops", "dy.sum().reshape([1]), None, None, None"])
def test_of_a_layer_that_is_named_no_place_is_told_but_its_file_s(gradcheck, package, folder, gives):
    layers = folder / "own_package" / "layers.py"
    kept, backward, rest = layers.read_text().partition("def backward(ctx, dy):\n")
    layers.write_text(f"{kept}{backward}        return {gives}\n{rest}")
    done = gradcheck("check", "own_package.layers:Scale", "-i", "x=2", "-i", "w=2")
    assert done.code == 1
    assert "Scale" in done.out
    assert "applied at" not in done.out


def test_a_function_is_checked_too(gradcheck, package):
    assert gradcheck("check", "own_package.layers:double", "-i", "x=scalar").code == 0


def test_a_package_below_src_is_found_and_imported(gradcheck, package, folder):
    (folder / "pyproject.toml").write_text("")
    (folder / "src").mkdir()
    (folder / "own_package").rename(folder / "src" / "own_package")
    assert gradcheck("check", "own_package.layers:double", "-i", "x=2").code == 0


@pytest.mark.parametrize("root", [".git", "pyproject.toml", "own_package/__init__.py"])
def test_a_module_is_found_from_below_the_root_of_a_project(gradcheck, package, folder, monkeypatch, root):
    below = folder / "own_package" if root.startswith("own") else folder / "deep" / "down"
    below.mkdir(parents=True, exist_ok=True)
    (folder / root).touch()
    monkeypatch.chdir(below)
    assert gradcheck("check", "own_package.layers:double", "-i", "x=2").code == 0


@pytest.mark.parametrize("name", ["own_package:Scale", "own_package.more:Mine", "own_package.more:Base"])
def test_a_layer_is_found_where_a_module_takes_it_or_its_forward_from(gradcheck, package, folder, name):
    (folder / "own_package" / "__init__.py").write_text("from .more import *\nfrom .layers import Scale\n")
    (folder / "own_package" / "more.py").write_text(
        "from own_package.layers import Scale as Base\n\n\nclass Middle(Base): pass\n\n\nclass Mine(Middle): pass\n"
    )
    done = gradcheck("check", name, "-i", "x=2", "-i", "w=2")
    assert (done.code, done.err) == (0, "")


def test_what_is_taken_in_a_circle_is_not_found(gradcheck, package, folder):
    (folder / "own_package" / "one.py").write_text("from .two import Lost\n")
    (folder / "own_package" / "two.py").write_text("from .one import Lost\n\n\nclass Own(Own): pass\n")
    for name in ("own_package.one:Lost", "own_package.two:Own"):
        done = gradcheck("check", name, "-i", "x=2")
        assert done.code == 1
        assert "circular import" in done.out


def test_how_it_is_called_can_be_said(gradcheck, package):
    done = gradcheck("check", "own_package.layers:Scale", "-i", "x=2", "-i", "w=2", "--call", "Scale.apply(x, w, 3.0)")
    assert done.code == 0


OBJECTS = """
import functools
import paddle
from paddle.autograd import PyLayer

FACTOR = 3.0


def made():
    class Twice(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * dy

    return Twice


def counted(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


Assigned = made()
try:
    from no_such_module import Fast as Optional
except ImportError:
    Optional = Assigned
if FACTOR:
    Alias = Assigned
partial = functools.partial(lambda x, y: x * y, y=2.0)
instance = paddle.nn.Linear(3, 2)


@counted
def decorated(x, times=2.0):
    return x * times


class Keyword(PyLayer):
    @staticmethod
    def forward(ctx, x, *, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy * w, dy * x


class Several(PyLayer):
    @staticmethod
    def forward(ctx, *xs):
        ctx.save_for_backward(*xs)
        return xs[0] * xs[1]

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensor()
        return dy * b, dy * a


def list_of(xs, scale=1.0):
    return Several.apply(*xs) * scale


def by_keywords(x, **weights):
    return x * weights["w"]


class Plain(paddle.nn.Layer):
    def forward(self, x):
        return x


class Sized(paddle.nn.Layer):
    def __init__(self, size):
        super().__init__()

    def forward(self, x):
        return x
"""
CALLED = [
    "Assigned -i x=2",
    "Optional -i x=2",
    "Alias -i x=2",
    "partial -i x=2",
    "instance -i input=4x3:float32",
    "decorated -i x=2 --kwarg times=3.0",
    "Keyword -i x=2 -i w=2",
    "Keyword -i w=2 -i x=2",
    "Several -i a=2 -i b=2",
    "Several -i xs=[2x1,2x1]",
    "list_of -i xs=[2x1,2x1]",
    "list_of -i xs=[2x1,2x1] --kwarg scale=2",
    "by_keywords -i x=2 -i w=2",
    "Plain -i x=2",
    "Plain -i x=2 --call Plain()(x)",
    "Assigned -i x=2 --call Assigned.apply(x*FACTOR)",
]


@pytest.fixture
def objects(folder):
    (folder / "objects.py").write_text(OBJECTS)


@pytest.mark.parametrize("words", CALLED)
def test_the_object_that_a_name_stands_for_is_checked_and_called_by_its_arguments(gradcheck, objects, words):
    layer, *options = words.split()
    done = gradcheck("check", f"objects:{layer}", *options)
    assert (done.code, done.err, done.out[:5]) == (0, "", "PASS ")


@pytest.mark.parametrize(
    ("words", "is_hinted"),
    [
        ("instance -i input=4x3", True),
        ("instance -i input=4x3:bfloat16", False),
        ("instance -i input=4x2:float32", False),
    ],
)
def test_a_refused_dtype_that_nobody_wrote_is_explained(gradcheck, objects, words, is_hinted):
    done = gradcheck("check", *f"objects:{words}".split())
    assert done.code == 1
    assert ("an input is float64 unless its dtype is written, such as -i x=2x3:float32" in done.out) == is_hinted


@pytest.mark.parametrize("words", CALLED)
def test_new_writes_of_it_what_validates_and_runs(gradcheck, objects, folder, words):
    layer, *options = words.split()
    assert gradcheck("new", f"objects:{layer}", *options, "-o", "a.grad.yaml").code == 0
    assert gradcheck("run", "a.grad.yaml", "--allow-code").code == 0


@pytest.mark.parametrize("layer", ["Assigned", "decorated", "Keyword", "Several", "list_of", "by_keywords", "instance"])
def test_new_without_inputs_writes_of_it_what_validates(gradcheck, objects, layer):
    assert gradcheck("new", f"objects:{layer}", "-o", "a.grad.yaml").code == 0
    assert gradcheck("validate", "a.grad.yaml").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check objects:Sized -i x=2", "Sized is the class of an nn.Layer"),
        ("check objects:FACTOR -i x=2", "FACTOR cannot be called"),
        ("check objects:decorated -i x=2 --kwarg tims=1", "no argument 'tims'; did you mean times?"),
        ("check objects:decorated -i x=2 --kwarg times", "--kwarg times: write NAME=VALUE"),
        ("check objects:decorated -i x=2 --kwarg x=1", "kwargs: 'x' is already the name of something else"),
        (
            "check objects:decorated -i x=2 --kwarg times=1 --call decorated(x)",
            "'call' and 'kwargs' exclude each other",
        ),
        ("check objects:decorated -i x=2 --call decorated(x,FACTR)", "call: there is no 'FACTR'; did you mean FACTOR?"),
        ("check objects:Assigned -i x=2 --call Assigned(x)", "is applied, not called: write Assigned.apply(…)"),
        ("new objects:decorated -i y=2", "forward has no argument 'y'"),
        ("new objects:decorated -i x=2 --call decorated(", "'(' was never closed"),
    ],
)
def test_what_it_cannot_be_called_with_is_explained(gradcheck, objects, words, said):
    done = gradcheck(*words.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_inside_a_package_its_modules_are_named_alone(gradcheck, package, folder, monkeypatch):
    (folder / "own_package" / "relative.py").write_text("from .layers import double as same\n")
    monkeypatch.chdir(folder / "own_package")
    done = gradcheck("check", "relative:same", "-i", "x=2")
    assert (done.code, done.err) == (0, "")
    assert "{ref: 'own_package.relative:same'}" in gradcheck("new", "relative:same").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["package"], "names no layer: write package.module:Layer"),
        (["own_package/layers.py:Scale"], "names no layer: write own_package.layers:Scale"),
        (["./own_package/layers.py:Scale"], "names no layer: write own_package.layers:Scale"),
        (["own_package.layers.py:Scale"], "names no layer: write own_package.layers:Scale"),
        (["own_package.layers.Scale"], "names no layer: write own_package.layers:Scale"),
        (["own_package.layer:Scale"], "did you mean own_package.layers?"),
        (["own_package.layers:Scael", "-i", "x=2"], "has no 'Scael'; did you mean Scale?"),
        (
            ["own_package.layers:Unlike", "-i", "x=2"],
            "has no 'Unlike'; there is Again, Plain, Scale, double",
        ),
        (["own_package.broken:Scale", "-i", "x=2"], "broken.py:2:12: '(' was never closed"),
        (
            ["own_package.layers:Scale", "-i", "x=2", "-i", "w=2", "-i", "y=2"],
            "no argument 'y'; it takes x, w, times=2.0",
        ),
        (["own_package.layers:Scale", "-i", "x=2", "-i", "x=3"], "--input x=… is given twice"),
        (["own_package.layers:Scale", "-i", "x=2", "-i", "w=2:flaot32"], "unknown option 'flaot32'; did you mean"),
        (["own_package.layers:Plain"], "class Plain has no forward: name a PyLayer"),
        (["no_such.module:Layer"], "there is no module no_such.module below"),
        (["own_package.layers:Scale"], "own_package/layers.py:6: forward takes x, w, times=2.0: give the shapes"),
        (["own_package.layers:Scale", "-i", "x=2x3"], "(--input w=2x3)"),
        (["own_package.layers:Scale", "-i", "x:2x3"], "--input x:2x3: write NAME="),
        (["own_package.layers:Scale", "-i", "x=2", "-i", "w=2:float8"], "float8"),
        (["own_package.layers:Scale", "-i", "x=2", "-i", "w=2", "-b", "chainer"], "there is no backend 'chainer'"),
    ],
)
def test_what_cannot_be_understood_is_explained(gradcheck, package, arguments, said):
    done = gradcheck("check", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (["x=2x3", "w=4"], "(line 11 of own_package/layers.py)"),
        (["x=2", "w=2", "--call", "Scale.apply(x, w, 1 // 0)"], "ZeroDivisionError: "),
    ],
)
def test_where_there_is_no_spec_none_is_spoken_of(gradcheck, package, inputs, said):
    first, second, *more = inputs
    done = gradcheck("check", "own_package.layers:Scale", "-i", first, "-i", second, *more)
    assert done.code == 1
    assert said in done.out
    assert "of the spec" not in done.out


def test_new_writes_a_scenario_that_is_valid_and_runs(gradcheck, package, folder):
    done = gradcheck("new", "own_package.layers:Scale", "-o", "own.grad.yaml")
    assert (done.code, done.out) == (0, "")
    text = (folder / "own.grad.yaml").read_text()
    (scenario,) = read_bytes(text.encode(), "own.grad.yaml").scenarios
    assert (scenario.id, list(scenario.inputs)) == ("scale", ["x", "w"])
    assert "# call: Scale.apply(x, w, times=2.0)" in text
    assert gradcheck("validate", "own.grad.yaml").code == 0
    assert gradcheck("run", "own.grad.yaml", "--allow-code").code == 0


def test_new_says_what_the_call_still_needs_or_takes_it(gradcheck, package):
    text = gradcheck("new", "own_package.layers:Scale", "-i", "w=2").out
    assert "# call: Scale.apply(w=w, x=…, times=2.0)  # needed: give a value for x" in text
    text = gradcheck("new", "own_package.layers:Scale", "-i", "w=2", "--call", "Scale.apply(paddle.ones([2]), w)").out
    assert "\n    call: Scale.apply(paddle.ones([2]), w)\n" in text


def test_new_names_the_folder_that_is_not_there(gradcheck, package, folder):
    done = gradcheck("new", "own_package.layers:Scale", "-o", "no/own.grad.yaml")
    missing = f"there is no folder {folder.absolute() / 'no'}: make it first"
    assert (done.code, done.err) == (2, f"gradcheck: -o no/own.grad.yaml: {missing}\n")


def test_what_a_module_prints_is_not_in_the_scenario(gradcheck, folder):
    (folder / "prints.py").write_text("print('loud')\ndef f(x): pass\n")
    done = gradcheck("new", "prints:f")
    assert (done.code, done.err) == (0, "loud\n")
    assert "loud" not in done.out


def test_new_never_writes_over_a_file(gradcheck, package, folder):
    (folder / "own.grad.yaml").write_text("mine")
    done = gradcheck("new", "own_package.layers:Scale", "-o", "own.grad.yaml")
    assert (done.code, (folder / "own.grad.yaml").read_text()) == (2, "mine")
    assert gradcheck("new", "own_package.layers:Scale", "-o", "own.yaml").code == 2


def test_init_lays_out_a_project_that_validates_and_runs(gradcheck, folder):
    done = gradcheck("init")
    assert done.code == 0
    assert tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["gradcheck"] == {
        "paths": ["specs"],
        "allow-code": True,
    }
    assert json.loads((folder / "specs" / "gradcheck.schema.json").read_text())["title"]
    assert (folder / ".github" / "workflows" / "gradcheck.yml").exists()
    assert gradcheck("validate", "specs").code == 0
    assert gradcheck("run").out.startswith("PASS example-square@numpy specs/example.grad.yaml:4:5")


def test_init_below_the_root_of_a_project_says_so(gradcheck, folder, monkeypatch):
    assert gradcheck("init").err == ""
    below = folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    done = gradcheck("init")
    assert f"this folder is inside the project {folder.absolute()}" in done.err
    assert (below / "pyproject.toml").exists()


def test_beside_the_schema_of_init_a_new_scenario_names_it(gradcheck, package, folder):
    gradcheck("init", "--no-github")
    assert gradcheck("new", "own_package.layers:Scale", "-o", "specs/own.grad.yaml").code == 0
    first = (folder / "specs" / "own.grad.yaml").read_text().splitlines()[0]
    assert first == (folder / "specs" / "example.grad.yaml").read_text().splitlines()[0]
    assert gradcheck("validate", "specs").code == 0


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ('{"url": "https://example.org/g.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
         "git+https://example.org/g.git@abc"),
        ('{"url": "file:///home/me/gradcheck", "dir_info": {"editable": true}}', "./gradcheck-*.whl"),
        (None, "./gradcheck-*.whl"),
    ],
)  # fmt: skip
def test_the_workflow_installs_no_name_that_anyone_may_take(gradcheck, folder, monkeypatch, origin, source):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    done = gradcheck("init")
    workflow = (folder / ".github" / "workflows" / "gradcheck.yml").read_text()
    assert f"- run: pip install {source}\n" in workflow
    assert ("pip wheel --no-deps" in done.out) == (source == "./gradcheck-*.whl")


def test_init_keeps_what_is_there(gradcheck, folder):
    (folder / "specs").mkdir()
    (folder / "specs" / "example.grad.yaml").write_text("mine")
    (folder / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    done = gradcheck("init", "--no-github")
    assert "kept    specs/example.grad.yaml\n" in done.out
    assert (folder / "specs" / "example.grad.yaml").read_text() == "mine"
    known = tomllib.loads((folder / "pyproject.toml").read_text())
    assert (known["project"]["name"], known["tool"]["gradcheck"]["paths"]) == ("mine", ["specs"])
    assert not (folder / ".github").exists()
    again = (folder / "pyproject.toml").read_text()
    assert gradcheck("init", "--no-github").code == 0
    assert (folder / "pyproject.toml").read_text() == again


def test_init_leaves_a_broken_pyproject_alone(gradcheck, folder):
    (folder / "pyproject.toml").write_text("[broken")
    done = gradcheck("init")
    assert done.code == 2
    assert "pyproject.toml: " in done.err
    assert (folder / "pyproject.toml").read_text() == "[broken"
