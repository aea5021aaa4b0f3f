"""``gradcheck schema``: the JSON Schema of the scenario format, for editors, and of reports."""

from __future__ import annotations

import click

from gradcheck.support.resources import packaged


@click.command()
@click.option("--report", is_flag=True, help="Print that of the reports that `run --report json:PATH` writes.")
def schema(report: bool) -> None:
    """Print the JSON Schema of *.grad.yaml files."""
    click.echo(packaged(f"schemas/{'report' if report else 'spec'}.json"), nl=False)
