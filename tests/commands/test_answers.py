"""Advice is right or silent, and what a command knows of a place, it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

TWO = """\
  - id: one
    layer: {op: tanh}
    inputs: {x: [2]}
  - id: two
    layer: {op: tanh}
    inputs: {x: [3]}
"""
LAYER = """\
  - id: own
    layer: |
      class Own(PyLayer):
          @staticmethod
          def forward(ctx, x):
              WHAT
              return x * 1
          @staticmethod
          def backward(ctx, dy):
              return dy
    inputs: {x: [2]}
"""


# --------------------------------------------------------------------------------- options
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --rtol 1", "No such option '--rtol': every estimate has an error bound; `rtol: 1e-3`"),
        ("check a:b --atol 1", "No such option '--atol': every estimate has an error bound"),
        ("check a:b --eps 1", "No such option '--eps': steps are chosen for every entry"),
        ("run --dtype float32", "No such option '--dtype': `dtype: float32` at an input"),
        ("run --jbos 2", "No such option '--jbos'; did you mean --jobs?"),
        ("run --resum", "No such option '--resum'; did you mean --resume?"),
        ("run --exitfrist", "No such option '--exitfrist'; did you mean --exitfirst?"),
        ("run --colour never", "No such option '--colour'; did you mean --color?"),
        ("run --frobnicate", "No such option '--frobnicate'."),
        ("check a:b --float32", "No such option '--float32'. An input is written"),
        ("run --noshuffle", "No such option '--noshuffle'."),
        ("run --ignore x", "No such option '--ignore'."),
        ("run --select x", "No such option '--select': write the id without an option."),
        ("run --deselect x", "No such option '--deselect': write -k 'not ID'."),
        ("schema --json", "No such option '--json'; it is an option of gradcheck list;"),
        ("--lf", "Options follow their command, as in gradcheck run --lf"),
    ],
)
def test_an_unknown_option_is_answered_with_what_to_write(gradcheck, command, said):
    done = gradcheck(*command.split())
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_verbose_and_quiet_exclude_each_other(gradcheck):
    assert gradcheck("run", "-v", "-q").err == "gradcheck: -v and -q exclude each other: remove one of the two\n"


def test_no_advice_would_write_over_a_file_of_the_users(gradcheck, folder):
    (folder / "notes.txt").write_text("mine")
    done = gradcheck("compare", "notes.txt", "notes.txt")
    assert done.code == 2
    assert "json:notes.txt" not in done.err


def test_a_line_behind_the_end_of_a_file_is_no_scenario(gradcheck, spec):
    spec(TWO)
    done = gradcheck("run", "a.grad.yaml:400")
    assert (done.code, done.err) == (
        2,
        "gradcheck: a.grad.yaml:400: the file has 8 lines; `gradcheck list a.grad.yaml` shows where each begins\n",
    )


@pytest.mark.parametrize("place", ["a.grad.yaml:6", "a.grad.yaml:6:5", "a.grad.yaml:7:12:"])
@pytest.mark.parametrize("command", ["run", "list", "show", "replay"])
def test_a_place_is_taken_as_output_has_it(gradcheck, spec, command, place):
    spec(TWO)
    assert gradcheck("run", "a.grad.yaml").code == 0
    done = gradcheck(command, place)
    assert (done.code, done.err) == (0, "")
    assert "two" in done.out
    assert "one" not in done.out


@pytest.mark.parametrize(
    ("tags", "written"), [("slow gpu", "[slow, gpu]"), ("3", "['3']"), ("Slow", "[slow]"), ("a, b", "[a, b]")]
)
def test_what_is_advised_for_tags_is_valid(gradcheck, spec, tags, written):
    path = spec(TWO.replace("id: one\n", f"id: one\n    tags: {tags}\n"))
    done = gradcheck("validate", "a.grad.yaml")
    assert f"help: write {written}\n" in done.out
    path.write_text(path.read_text().replace(f"tags: {tags}", f"tags: {written}"))
    assert gradcheck("validate", "a.grad.yaml").code == 0


def test_a_file_of_an_input_that_is_not_there_is_a_mistake(gradcheck, spec, folder):
    spec("  - id: one\n    layer: {op: tanh}\n    inputs: {x: {from: sub/x.npy}}\n")
    done = gradcheck("validate", "a.grad.yaml")
    assert done.code == 2
    assert "a.grad.yaml:5:24: error: there is no file 'sub/x.npy'" in done.out
    assert f"help: name an .npy or .npz file below {folder}\n" in done.out
    (folder / "sub").mkdir()
    (folder / "sub" / "x.npy").touch()
    assert gradcheck("validate", "a.grad.yaml").code == 0


def test_two_checkouts_in_one_folder_are_one_mistake_for_two_files(gradcheck, spec):
    names = ("first/a.grad.yaml", "second/a.grad.yaml")
    for name in names:
        spec(TWO, TWO.replace("one", "three").replace("two", "four"), name=name)
    done = gradcheck("validate", "first", "second")
    assert done.out.count("error: ") == 1
    first, second = names
    assert f"{second}:3:5: error: id 'one' is also used in {first}:3, and 3 more ids of this file" in done.out


# --------------------------------------------------------------------------------- stdin and stdout
def test_a_spec_is_run_from_stdin(cli):
    text = f"schema: gradcheck/v1\nscenarios:\n{TWO}"
    done = cli("run", "-", input=text)
    assert (done.code, re.findall(r"^PASS (\w+)@numpy -:", done.out, re.M)) == (0, ["one", "two"])
    assert cli("show", "-", "two", input=text).out.startswith("# -:6:5\n  - id: two\n")


def test_code_from_stdin_needs_permission_whatever_the_project_says(cli, folder):
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\nallow-code = true\n")
    text = f"schema: gradcheck/v1\nscenarios:\n{LAYER.replace('WHAT', 'pass')}"
    assert cli("run", "-", input=text).code == 2
    assert cli("run", "-", "--allow-code", input=text).code == 0


def test_a_report_to_stdout_is_alone_there(spec, cli):
    spec(TWO)
    done = cli("run", "a.grad.yaml", "--report", "json:-")
    assert [result["name"] for result in json.loads(done.out)["results"]] == ["one@numpy", "two@numpy"]
    assert "2 PASS in " in done.err


def test_completing_a_command_imports_none():
    code = "from gradcheck.commands import main; import click, sys"
    code += "; items = main.shell_complete(click.Context(main), 're')"
    code += "; print([item.value for item in items], 'gradcheck.commands.replay' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['replay'] False\n"


# --------------------------------------------------------------------------------- places
@pytest.mark.parametrize(
    ("what", "status"),
    [("raise ValueError('no')", "ERROR"), ("import os; os.abort()", "CRASH"), ("while True: pass", "TIMEOUT")],
)
def test_an_annotation_is_at_the_line_that_raised_crashed_or_did_not_end(spec, gradcheck, folder, what, status):
    spec(LAYER.replace("WHAT", what))
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--timeout", "1", "--report", "github:a.txt")
    assert done.code == 1
    annotation = (folder / "a.txt").read_text()
    assert annotation.startswith(f"::error file=a.grad.yaml,line=8,col=1,title={status} own@numpy::")
    assert "%0Ascenario: a.grad.yaml:3:5" in annotation


def test_the_line_may_be_in_a_module(gradcheck, spec, folder):
    (folder / "mod.py").write_text("def helper(x):\n    raise ValueError\n\n\ndef f(x):\n    return helper(x)\n")
    spec("  - id: own\n    layer: {ref: 'mod:f'}\n    inputs: {x: [2]}\n")
    gradcheck("run", "a.grad.yaml", "--allow-code", "--report", "github:a.txt", "--report", "sarif:a.sarif")
    assert (folder / "a.txt").read_text().startswith("::error file=mod.py,line=2,col=1,")
    (result,) = json.loads((folder / "a.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("mod.py", 2)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_on_github_a_mistake_in_a_spec_is_an_annotation(spec, cli, command):
    spec(TWO.replace("op: tanh", "op: tahn"))
    done = cli(command, "a.grad.yaml", GITHUB_ACTIONS="true")
    assert done.code == 2
    assert "::error file=a.grad.yaml,line=4,col=17,title=gradcheck validate::unknown op 'tahn'" in done.out


# --------------------------------------------------------------------------------- runs
def test_a_mistake_in_another_file_does_not_keep_a_scenario_from_being_run(spec, gradcheck, folder):
    (folder / "pyproject.toml").touch()
    spec(TWO)
    spec(TWO.replace("one", "three").replace("two", "four").replace("op: tanh", "op: tahn"), name="b.grad.yaml")
    done = gradcheck("run", "two")
    assert (done.code, done.out[:14]) == (0, "PASS two@numpy")
    assert done.err == "gradcheck: 2 mistakes in b.grad.yaml; `gradcheck validate` shows them\n"
    assert gradcheck("run", "three").code == 2
    assert gradcheck("run").code == 2


def test_a_case_that_fails_is_run_again_and_shown_as_flaky_if_it_then_passes(spec, gradcheck, folder):
    spec(LAYER.replace("WHAT", "if os.path.getsize('runs') <= 1: raise ValueError('at first')").replace(
        "class Own", "import os\n      with open('runs', 'a') as file: file.write('x')\n      class Own"
    ))  # fmt: skip
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--reruns", "3")
    assert done.code == 0
    assert "flaky: PASS at rerun 1 of 3, ERROR before: ValueError: at first" in done.out
    (folder / "runs").unlink()
    assert gradcheck("run", "a.grad.yaml", "--allow-code").code == 1


def test_what_fails_each_time_is_run_no_more_often_than_asked(spec, gradcheck, folder):
    spec(LAYER.replace("WHAT", "open('runs', 'a').write('x'); raise ValueError"))
    assert gradcheck("run", "a.grad.yaml", "--allow-code", "--reruns", "2").code == 1
    assert len((folder / "runs").read_text()) == 3


def test_shuffled_cases_run_in_another_order_and_are_reported_in_theirs(spec, gradcheck, folder):
    names = [f"case-{letter}" for letter in "abcdefgh"]
    note = "open('order', 'a').write(SELF)"
    scenarios = [LAYER.replace("own", name).replace("WHAT", note.replace("SELF", repr(name[-1]))) for name in names]
    spec(*scenarios)

    def order(*options: str) -> str:
        done = gradcheck("run", "a.grad.yaml", "--allow-code", "-j", "1", *options)
        assert re.findall(r"^PASS (\S+)@", done.out, re.M) == names
        text = (folder / "order").read_text()
        (folder / "order").unlink()
        return "".join(dict.fromkeys(text))

    assert order() == "abcdefgh"
    shuffled = order("--shuffle")
    assert shuffled != "abcdefgh"
    assert shuffled == order("--shuffle")
    assert sorted(shuffled) == list("abcdefgh")
