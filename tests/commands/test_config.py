"""``[tool.gradcheck]``: the nearest pyproject.toml upward; every unknown key and unfit value is an error."""

from __future__ import annotations

import pytest

from gradcheck.config import Config, ConfigError, load_project


@pytest.fixture
def project(tmp_path):
    """Writes a pyproject.toml into a folder of the test's own."""

    def write(text: str):
        (tmp_path / "pyproject.toml").write_text(text)
        return tmp_path

    return write


def test_without_settings_there_are_defaults(project):
    assert load_project(project("[tool.other]\nx = 1\n")).config == Config()
    assert (Config().allow_code, Config().jobs, Config().paths) == (False, "auto", ())


def test_every_key_is_read_and_paths_begin_at_the_file(project):
    folder = project(
        '[tool.gradcheck]\nallow-code = true\npaths = ["specs", "/abs"]\n'
        'backends = ["cupy", "numpy", "paddle@3.0.0"]\njobs = 3\ntimeout = 5\n'
        '[tool.gradcheck.environments]\n"paddle@3.0.0" = "env/bin/python"\n"paddle@3.1.1" = "/abs/python"\n'
    )
    below = folder / "deep" / "down"
    below.mkdir(parents=True)
    config = load_project(below).config
    assert config.allow_code
    assert config.paths == (str(folder / "specs"), "/abs")
    assert (config.backends, config.jobs, config.timeout) == (("cupy", "numpy", "paddle@3.0.0"), 3, 5)
    assert config.environments == {"paddle@3.0.0": str(folder / "env/bin/python"), "paddle@3.1.1": "/abs/python"}


def test_the_nearest_file_alone_counts(project):
    folder = project("[tool.gradcheck]\nallow-code = true\n")
    (folder / "inner").mkdir()
    (folder / "inner" / "pyproject.toml").write_text("")
    assert not load_project(folder / "inner").config.allow_code


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_no_file_above_a_clone_counts(project, kind):
    clone = project("[tool.gradcheck]\njobs = 3\n") / "clone"
    (clone / "deep").mkdir(parents=True)
    assert load_project(clone / "deep").config.jobs == 3
    if kind == "folder":
        (clone / ".git").mkdir()
    elif kind == "file":  # of a worktree or a submodule
        (clone / ".git").write_text("gitdir: elsewhere")
    else:
        (clone / ".git").symlink_to("nowhere")
    assert load_project(clone / "deep").config == Config()
    (clone / "pyproject.toml").write_text("[tool.gradcheck]\njobs = 4\n")
    assert load_project(clone / "deep").config.jobs == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("allow-cod = true", "has no key 'allow-cod'; did you mean allow-code?"),
        ("allow_code = true", "has no key 'allow_code'; did you mean allow-code?"),
        ("x = 1", "has no key 'x'; the keys are allow-code, paths, backends, environments, jobs, timeout"),
        ('allow-code = "yes"', "allow-code must be true or false, not 'yes'"),
        ("allow-code = 1", "allow-code must be true or false, not 1"),
        ('paths = "specs"', """paths must be a list of files and folders, such as ["specs"], not 'specs'"""),
        ("paths = [1]", 'paths must be a list of files and folders, such as ["specs"], not [1]'),
        (
            'backends = ["chainer"]',
            """backends must be a list of backends, such as ["numpy", "cupy", "paddle", "paddle@3.0.0"], """
            "not ['chainer']: there is no backend 'chainer'; the backends are numpy, cupy, paddle, torch, jax",
        ),
        (
            'environments = {"paddle" = "/bin/python"}',
            'environments must be a table of interpreters, such as {"paddle@3.0.0" = "/opt/paddle-3.0.0/bin/python"}, '
            "not {'paddle': '/bin/python'}: paddle has no version",
        ),
        ("jobs = 0", 'jobs must be "auto" or a number from 1 to 1,000, not 0'),
        ("jobs = true", 'jobs must be "auto" or a number from 1 to 1,000, not True'),
        ("timeout = -1", "timeout must be a number of seconds above 0, at most 86,400, not -1"),
        ("timeout = inf", "timeout must be a number of seconds above 0, at most 86,400, not inf"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(project, text, message):
    folder = project(f"[tool.gradcheck]\n{text}\n")
    with pytest.raises(ConfigError) as error:
        load_project(folder)
    assert str(error.value) == f"{folder / 'pyproject.toml'}: [tool.gradcheck] {message}"


def test_all_mistakes_are_named_once_each(project):
    folder = project('[tool.gradcheck]\nx = 1\njobs = "many"\nbackends = ["a", "b"]\n')
    with pytest.raises(ConfigError) as error:
        load_project(folder)
    assert len(str(error.value).splitlines()) == 3


@pytest.mark.parametrize(
    "content", [b"[tool.gradcheck", b"\xff", b"[tool]\ngradcheck = 3\n", b"[[tool.gradcheck]]\nx = 1\n"]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"pyproject\.toml: "):
        load_project(tmp_path)


def test_a_tool_that_is_no_table_has_no_settings_for_us(project):
    assert load_project(project("tool = 3\n")).config == Config()


def test_commands_stop_at_a_mistake_before_anything_runs(gradcheck, folder):
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\njobz = 1\n")
    for command in (["run"], ["list"], ["show", "x"]):
        done = gradcheck(*command)
        assert (done.code, done.out) == (2, "")
        assert "has no key 'jobz'; did you mean jobs?" in done.err


def test_settings_take_effect_and_the_command_line_goes_before_them(gradcheck, spec, folder):
    spec(
        "  - id: slow\n    title: t\n    source: {document: d}\n    script: while True pass\n".replace(
            "True pass", "1 < 2: pass"
        ).replace("script: ", "script: |\n      "),
        name="in/a.grad.yaml",
    )
    (folder / "pyproject.toml").write_text(
        '[tool.gradcheck]\nallow-code = true\npaths = ["in"]\ntimeout = 0.5\njobs = 1\n'
    )
    assert "ran longer than 0.5 s" in gradcheck("run").out
    assert "ran longer than 0.2 s" in gradcheck("run", "--timeout", "0.2").out
