"""``gradcheck schema``: the JSON Schema of the scenario format, for editors, and of reports."""

from __future__ import annotations

import click


@click.command()
@click.option("--report", is_flag=True, help="That of the reports that --report json:PATH writes.")
def schema(report: bool) -> None:
    """Print the JSON Schema of *.grad.yaml files."""
    import json

    from gradcheck.report import record
    from gradcheck.spec.model import json_schema

    click.echo(json.dumps(record.schema() if report else json_schema(), indent=2, ensure_ascii=False))
