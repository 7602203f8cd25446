"""Account: sends all requests to AWS, and turns its errors into messages.

boto3 finds region and credentials: in the environment, a profile, SSO, or the role of a machine.
"""

from __future__ import annotations

import email.utils
import functools
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import redaction, registry
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import duration, printable

# Every request that we make; `dbcluster ec2 policy` permits these. ``Account.call`` accepts no other.
OPERATIONS = frozenset(
    {
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:CancelSpotInstanceRequests",
        "ec2:CreatePlacementGroup",
        "ec2:CreateSecurityGroup",
        "ec2:CreateTags",
        "ec2:DeleteKeyPair",
        "ec2:DeleteNetworkInterface",
        "ec2:DeletePlacementGroup",
        "ec2:DeleteSecurityGroup",
        "ec2:DeleteVolume",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceCreditSpecifications",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstances",
        "ec2:DescribeKeyPairs",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSpotInstanceRequests",
        "ec2:DescribeSubnets",
        "ec2:DescribeVolumes",
        "ec2:ImportKeyPair",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
        "pricing:GetProducts",
        "servicequotas:GetServiceQuota",
        "ssm:GetParameter",
    }
)
SERVICES = {"servicequotas": "service-quotas"}  # prefix of a permission -> name of boto3's client
MISSING = "the provisioner ec2 needs the package boto3: pip install 'pytest-dbcluster[ec2]'"
POLICY = "`dbcluster ec2 policy` prints what a run needs"
CONNECT_SECONDS, READ_SECONDS = 10, 60
ATTEMPTS = 3  # of a request, in boto3's mode `standard`, which does not retry if AWS has no capacity
SKEW_SECONDS = 240.0  # AWS accepts requests whose time differs by at most 5 min
MOST = 500  # characters shown of a text that is not an answer of AWS
KNOWN_NAMES = 30  # longer enumerations are not listed

# Texts that we must not show: account numbers, resource names with these, keys, and encoded refusals.
SECRETS = (
    (re.compile(r"\s*Encoded authorization failure message: \S+"), ""),
    (re.compile(r"arn:aws[a-z-]*:[^\s,;'\"]+"), "arn:***"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"), "***"),
    (re.compile(r"(?<![\w-])\d{12}(?!\w)"), "***"),
    (re.compile(r"[A-Za-z0-9+/=_-]{100,}"), "***"),
)

# Error code -> what to do about it. {operation}: the permission that the request needs.
ADVICE = {
    "NoCredentials": "there are no credentials: `aws configure`, `aws sso login`, AWS_PROFILE or AWS_ACCESS_KEY_ID",
    "NoRegion": "no region is chosen: set AWS_DEFAULT_REGION, or `aws configure set region eu-central-1`, or "
    "--db-ec2-zone",
    "ExpiredToken": "the credentials have expired: get new ones, such as by `aws sso login`",
    "AuthFailure": "AWS does not know these credentials: check AWS_PROFILE and the keys, or `aws sso login`",
    "UnauthorizedOperation": f"these credentials do not permit {{operation}}; {POLICY}",
    "InsufficientInstanceCapacity": "AWS does not have enough of these instances now: try another --db-ec2-zone or "
    "--db-ec2-type, or try later",
    "VcpuLimitExceeded": "the account's limit of vCPUs is used: use fewer or smaller instances, or ask AWS for a "
    "higher quota (Service Quotas, EC2)",
    "MaxSpotInstanceCountExceeded": "the account's limit of spot instances is used: leave out --db-ec2-spot, or ask "
    "AWS for a higher quota (Service Quotas, EC2)",
    "SpotMaxPriceTooLow": "spot instances cost more now than the limit: leave out --db-ec2-spot",
    "InsufficientFreeAddressesInSubnet": "the subnet has no free addresses: name another one with --db-ec2-subnet",
    "Unsupported": "this zone does not offer it: try another --db-ec2-zone or --db-ec2-type",
    "InvalidInstanceType": "this region has no such type: try another --db-ec2-type, or region",
    "OptInRequired": "the account must accept the terms of the image, or enable the region",
    "RequestLimitExceeded": "AWS gets too many requests from this account now: try later, with fewer workers (-n)",
    "NoAnswer": "check the network, the proxy (HTTPS_PROXY) and the name of the region",
    "ParameterNotFound": "this region has no such public parameter: name an image with --db-ec2-image",
}
# Codes with the same meaning.
SAME = {
    "ExpiredTokenException": "ExpiredToken",
    "RequestExpired": "ExpiredToken",
    "InvalidClientTokenId": "AuthFailure",
    "UnrecognizedClientException": "AuthFailure",
    "SignatureDoesNotMatch": "AuthFailure",
    "InvalidSignatureException": "AuthFailure",
    "AccessDenied": "UnauthorizedOperation",
    "AccessDeniedException": "UnauthorizedOperation",
    "InsufficientHostCapacity": "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity": "InsufficientInstanceCapacity",
    "InstanceLimitExceeded": "VcpuLimitExceeded",
    "UnsupportedOperation": "Unsupported",
    "Throttling": "RequestLimitExceeded",
    "ThrottlingException": "RequestLimitExceeded",
}
CLOCK = {
    "ExpiredToken",
    "AuthFailure",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
}  # errors that a wrong clock causes
CREDENTIALS = {"ExpiredToken", "AuthFailure", "NoCredentials"}


class AwsError(ProvisionError):
    """A request that AWS refused, or that did not reach AWS. code: AWS's or ours; of synonyms, the first."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class Account:
    """An account in one region. region: the default if boto3 finds none. Raises ConfigError without boto3 or a region.

    ahead: seconds by which our clock is ahead of AWS's at the last answer; None before an answer.
    """

    def __init__(self, region: str = "") -> None:
        try:
            import boto3  # noqa: F401  # large, and needed only by this provisioner
            import botocore.config
            import botocore.exceptions
            import botocore.parsers
        except ImportError:
            raise ConfigError(MISSING) from None
        self._errors: Any = botocore.exceptions
        # An answer that is not from AWS, such as a proxy's page.
        self._unreadable: Any = botocore.parsers.ResponseParserError
        self._method: Any = botocore.xform_name
        try:
            self._session: Any = _session()
            own = self._session.region_name
            if own and region and own != region:
                self._session = _session(region)
        except botocore.exceptions.BotoCoreError as error:
            raise ConfigError(f"AWS: {redact(str(error))}") from None
        self.region: str = region or own or ""
        if not self.region:
            raise ConfigError(f"AWS: {ADVICE['NoRegion']}")
        self._config = botocore.config.Config(
            region_name=self.region,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            user_agent_extra="pytest-dbcluster",
        )
        self._clients: dict[str, Any] = {}
        self._making = threading.Lock()
        self.ahead: float | None = None

    def call(self, service: str, operation: str, /, **request: Any) -> Mapping[str, Any]:
        """The answer to a request, such as ``call("ec2", "RunInstances", MinCount=3, ...)``. Raises AwsError.

        It checks the request against botocore's model of the service, with its enumerations. Raises ValueError for an
        operation that is not in ``OPERATIONS``, and for a request that does not fit the model.
        """
        name = f"{service}:{operation}"
        if name not in OPERATIONS:
            raise ValueError(f"{name} is not in OPERATIONS, from which the IAM policy is made")
        try:
            client = self._client(service)
            check(client.meta.service_model.operation_model(operation).input_shape, request, "")
            answer: Mapping[str, Any] = getattr(client, self._method(operation))(**request)
        except self._errors.ClientError as error:
            self._compare_clocks(error.response)
            raise self._refusal(name, error.response) from None
        except self._errors.ParamValidationError as error:
            raise ValueError(f"{name}: {error}") from None
        except (self._errors.BotoCoreError, self._errors.HTTPClientError, self._unreadable, OSError) as error:
            raise self._connection_error(name, error) from None
        self._compare_clocks(answer)
        return answer

    def all(self, operation: str, key: str, /, **request: Any) -> list[Mapping[str, Any]]:
        """The entries of all pages of an answer of EC2. key: of the entries in a page. Raises AwsError."""
        found: list[Mapping[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = self.call("ec2", operation, **request, **token)
            found += page.get(key, [])
            if not page.get("NextToken"):
                return found
            token = {"NextToken": page["NextToken"]}

    def permits(self, operation: str, /, **request: Any) -> None:
        """Raise AwsError unless EC2 would permit a request; does not execute it."""
        try:
            self.call("ec2", operation, DryRun=True, **request)
        except AwsError as error:
            if error.code != "DryRunOperation":
                raise

    def _client(self, service: str) -> Any:
        with self._making:
            if service not in self._clients:
                self._remember_secrets()
                name = SERVICES.get(service, service)
                region = (
                    {"region_name": "us-east-1"} if service == "pricing" else {}
                )  # the price list of all regions is there
                self._clients[service] = self._session.client(name, config=self._config, **region)
            return self._clients[service]

    def _remember_secrets(self) -> None:
        """Hide the keys of these credentials in all texts that we show."""
        credentials = self._session.get_credentials()
        if credentials is None:
            raise self._errors.NoCredentialsError
        frozen = credentials.get_frozen_credentials()
        for secret in (frozen.secret_key, frozen.token):
            redaction.remember(secret or "")

    def _compare_clocks(self, answer: Mapping[str, Any]) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self.ahead = time.time() - email.utils.parsedate_to_datetime(date).timestamp()

    def _refusal(self, name: str, answer: Mapping[str, Any]) -> AwsError:
        """The error for a refusal by AWS."""
        told = answer.get("Error", {}).get("Code", "") or "unknown"
        code = SAME.get(told, told)
        words = printable(redact(answer.get("Error", {}).get("Message", "")))
        if code in CLOCK and self.ahead is not None and abs(self.ahead) > SKEW_SECONDS:
            side = "ahead of" if self.ahead > 0 else "behind"
            text = (
                f"the clock of this machine is {duration(abs(self.ahead))} {side} that of AWS, which refuses the "
                "request: set the clock, such as by `timedatectl set-ntp true`"
            )
            return AwsError(f"AWS, {name}: {text} ({told})", "Clock")
        advice = ADVICE.get(code, "").format(operation=name)
        return AwsError(f"AWS, {name}: {advice}{'; ' if advice else ''}it said: {told}: {words}", code)

    def _connection_error(self, name: str, error: Exception) -> AwsError:
        """The error for a request that did not reach AWS."""
        kind = type(error).__name__
        if kind in ("NoCredentialsError", "PartialCredentialsError"):
            code = "NoCredentials"
        elif "Token" in kind or "SSO" in kind or "Credential" in kind:
            code = "ExpiredToken"
        else:
            code = "NoRegion" if kind == "NoRegionError" else "NoAnswer"
        return AwsError(f"AWS, {name}: {ADVICE[code]}; the error: {printable(redact(str(error))[:MOST])}", code)


def _session(region: str | None = None) -> Any:
    """A session of boto3 that shares the descriptions of AWS's services with the others of this process."""
    import boto3
    import botocore.session

    core = botocore.session.get_session()
    core.register_component("data_loader", _descriptions(core.get_config_variable("data_path")))
    return boto3.Session(botocore_session=core, region_name=region)


@functools.cache
def _descriptions(path: str | None) -> Any:
    """The reader of these descriptions, which keeps what it read: that of EC2 takes .1 s of CPU to read."""
    import botocore.loaders

    return botocore.loaders.create_loader(path)


def check(shape: Any, value: Any, where: str) -> None:
    """Raise ConfigError for a value of a request that is not in the enumeration of its field.

    shape: of botocore, which itself checks only names and types. where: the path to the value, for the message.
    """
    if shape is None:
        return
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        for name, inner in value.items():
            if name in shape.members:
                check(shape.members[name], inner, f"{where}.{name}" if where else name)
    elif kind == "list" and isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            check(shape.member, inner, f"{where}[{number}]")
    elif getattr(shape, "enum", None) and value not in shape.enum:
        known = shape.enum
        if len(known) <= KNOWN_NAMES:
            raise registry.unknown(where, value, known)
        raise ConfigError(f"{where} {value!r} is not known to this boto3: check its name, or pip install -U boto3")


def redact(text: str) -> str:
    """A text of AWS without account numbers, resource names with these, keys and encoded refusals."""
    for pattern, instead in SECRETS:
        text = pattern.sub(instead, text)
    return redaction.redact(text).strip()
