"""``gradcheck schema``: the JSON Schema of the scenario format, for editors."""

from __future__ import annotations

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of *.grad.yaml files."""
    import json

    from gradcheck.spec.model import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
