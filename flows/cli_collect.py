"""`pldp collect`: what an operator needs to ask people on their own devices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from pldp.flows.options import out

app = typer.Typer(name="collect", help="Ask people on their own devices.", no_args_is_help=True)
HomeOption = Annotated[Path, typer.Option("--home", help="The folder of the inbox, the collector's alone.")]
KeyOption = Annotated[Path, typer.Option("--key", help="The operator's signing key, as `pldp collect keys` made it.")]


@app.command()
def keys(path: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key will lie.")]) -> None:
    """Make the key pair that signs collection plans, and print its fingerprint for people to compare."""
    from pldp.tasks.signing import make_key

    fingerprint = make_key(path)
    out.print(f"{path}: keep it where no web server reads. Fingerprint of its public key:", highlight=False)
    out.print(fingerprint, highlight=False, soft_wrap=True)


@app.command()
def tokens(
    number: Annotated[int, typer.Argument(min=1, max=10_000_000, help="How many people will get one.")],
    home: HomeOption,
) -> None:
    """Make one-time tokens, one per person, and print them: only their hashes are kept."""
    from pldp.flows.collecting import make_tokens

    for token in make_tokens(home, number):
        typer.echo(token)


@app.command()
def serve(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The signed plan, as `pldp collect plan` wrote it.")],
    home: HomeOption,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = 8080,
    rate: Annotated[float, typer.Option(min=1, help="Messages per second, of everybody together.")] = 10_000,
    disk: Annotated[int, typer.Option(min=1, help="Megabytes that the inbox may take.")] = 8192,
) -> None:
    """Take people's messages, and serve the plan and the page. It reads no key and no vault, and logs nobody."""
    from pldp.flows.collector_service import serve
    from pldp.flows.collector_writer import Limits

    serve(plan, home, host, port, Limits(rate=rate, disk=disk << 20))


@app.command()
def plan(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="A spec whose source is what clients send.")],
    key: KeyOption,
    to: Annotated[Path, typer.Option("--out", help="Where to write the signed plan.")] = Path("plan.signed"),
    period: Annotated[str, typer.Option(help="What people answer once for, such as a month; then they may again.")] = (
        "once"
    ),
    days: Annotated[int, typer.Option(min=1, max=3660, help="After how many days the plan expires.")] = 30,
) -> None:
    """Write the collection plan of a spec, signed: everything that a client needs, for anybody to read."""
    from pldp.tasks.handout import write_plan
    from pldp.tasks.specfile import load_spec

    issued = datetime.now(UTC)
    written = write_plan(load_spec(spec), key, to, period=period, issued=issued, expires=issued + timedelta(days=days))
    out.print(f"{to}: plan {written.sha256}", highlight=False, soft_wrap=True)
    out.print(f"signed by {written.fingerprint}", highlight=False, soft_wrap=True)
    out.print(f"expires {written.expires:%Y-%m-%d %H:%M} UTC", highlight=False, soft_wrap=True)
