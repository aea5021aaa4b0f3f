"""docs/observed.md, made from the table.

python tests/differential/observed/page.py      # with an installed Paddle; from the top of the project
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from observed import contexts, layers, tensors
from observed.rule import HELPERS, Rule, printed

RULES: list[Rule] = sorted([*layers.RULES, *contexts.RULES, *tensors.RULES], key=lambda rule: rule.number)
PAGE = Path(__file__).parents[3] / "docs/observed.md"

HEAD = f"""# What Paddle 3.3.1 does

If the documents are silent, the engine behaves like the release. Comments, specs and messages cite these rules by number
("observed rule 38"). Each has a program that shows it, and the program's output on paddlepaddle 3.3.1 (CPU); an exception is printed
as its type. If the engine differs on purpose, the rule says how.

`python tests/differential/observed/page.py` writes this page; `tests/differential` runs every program on both. Missing
numbers are not cited anywhere. The programs use `paddle`, `PyLayer`, `np` and

```python
{HELPERS.strip()}
```
"""


def page(paddle: Any) -> str:
    """The page, the programs run on an installed Paddle."""
    return HEAD + "".join(section(rule, "" if rule.crashes else printed(paddle, rule.program)) for rule in RULES)


def section(rule: Rule, output: str) -> str:
    """One rule."""
    engine = f"\n**The engine:** {rule.engine}\n" if rule.engine else ""
    shown = f"```\n{output.rstrip()}\n```\n" if not rule.crashes else "The process ends with a segmentation fault.\n"
    return f"\n## {rule.number}. {rule.says}\n\n```python\n{rule.program.strip()}\n```\n\n{shown}{engine}"


if __name__ == "__main__":
    import paddle

    PAGE.write_text(page(paddle), encoding="utf-8")
