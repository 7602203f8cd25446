"""``dbcluster ec2``: fetch and list the prices for the cost of a run, and print the permissions that it needs."""

from __future__ import annotations

import argparse
import json

from pytest_dbcluster.cli.text import tell

LISTED = ("r6i.large", "t3.medium", "m5d.xlarge")  # types of published measurements


def add_ec2(ec2: argparse.ArgumentParser) -> None:
    """Add the commands of ``dbcluster ec2`` to its parser."""
    actions = ec2.add_subparsers(title="commands", required=True, metavar="COMMAND")
    text = "fetch the prices of a region from AWS's price list, free of charge, or list the known prices"
    prices = actions.add_parser("prices", help=text, description=f"{text[0].upper()}{text[1:]}.")
    prices.epilog = "example: dbcluster ec2 prices --region eu-central-1 --list r6i.large"
    region = "the region, such as eu-central-1"
    prices.add_argument("--region", default="", metavar="REGION", help=f"{region} (default: that of boto3)")
    prices.add_argument("--list", action="store_true", help="list known prices with source and age, and fetch nothing")
    prices.add_argument(
        "types", nargs="*", metavar="TYPE", help=f"instance types to list (default: {', '.join(LISTED)})"
    )
    prices.set_defaults(run=run_prices)
    text = "print the smallest IAM policy that permits runs, as JSON"
    policy = actions.add_parser("policy", help=text, description=f"{text[0].upper()}{text[1:]}.")
    policy.add_argument(
        "--region", action="append", default=[], metavar="REGION", help=f"{region}; repeatable (default: every region)"
    )
    policy.add_argument(
        "--reaper", action="store_true", help="for a role that ends leftovers of runs, and can launch nothing"
    )
    policy.set_defaults(run=run_policy)


def run_prices(arguments: argparse.Namespace) -> int:
    """``dbcluster ec2 prices``: fetch the prices of a region, unless --list is there, and list them with their age."""
    import datetime

    from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
    from pytest_dbcluster.hosts.provisioners.ec2.money import price_list

    region = arguments.region
    if not (arguments.list and region):
        account = Account(region)
        region = account.region
        if not arguments.list:
            path = price_list.renew(account, datetime.datetime.now(datetime.UTC).date(), tell)
            print(f"wrote the prices of {region} to {path}")
    print(table(region, arguments.types or LISTED))
    return 0


def table(region: str, types: list[str] | tuple[str, ...]) -> str:
    """The prices in a region of these instance types and of all other items, with their age. Raises ConfigError."""
    from pytest_dbcluster.formatting import duration
    from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices, check_type
    from pytest_dbcluster.hosts.provisioners.ec2.settings import PRICED
    from pytest_dbcluster.reporting.tables import layout

    prices, rows = Prices(), []
    for name in (*map(check_type, types), *PRICED):
        unit = PRICED.get(name, "USD for an hour of an instance with Linux, on demand")
        source, price = prices.known_price(name, region)
        age = duration(86400 * prices.age(source)) if source else ""
        rows.append((name, "unknown" if price is None else f"{price:g}", unit, str(source or ""), age))
    return layout.plain(("price", "USD", "of", "source", "age"), rows)


def run_policy(arguments: argparse.Namespace) -> int:
    """``dbcluster ec2 policy``: print the policy."""
    from pytest_dbcluster.hosts.provisioners.ec2 import policy

    print(json.dumps(policy.document(arguments.region, reaper=arguments.reaper), indent=2))
    return 0
