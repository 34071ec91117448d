"""What the generated requests of `contract.py` are given on their way: credentials.

The document says of each operation whether it takes an API key (L2), a wallet's signature (L1) or
nothing. Both are computed over what is really sent, so they are made where the bytes are known.

At the end, the statuses of signed requests are left for `contract.py`, by operation.
"""

import atexit
import base64
import collections
import hashlib
import hmac
import json
import os
import time

import requests
import schemathesis
from eth_account import Account
from eth_account.messages import encode_typed_data

FAMILIES = ["SERVICE", "KUEST", "POLY"]

# Operations that remove what others need: the caller's key.
DESTRUCTIVE = {"apiKeyRevoke"}

account = json.loads(os.environ["CONTRACT_ACCOUNT"])

# How often each operation answered a signed request with each status.
signed = collections.defaultdict(collections.Counter)


@atexit.register
def leave_statuses():
    with open(os.environ["CONTRACT_SIGNED"], "w") as file:
        json.dump(signed, file)


class Level2(requests.auth.AuthBase):
    """The five headers of an API key."""

    def __init__(self, family):
        self.family = family

    def __call__(self, request):
        timestamp = str(int(time.time()))
        path = request.path_url.split("?")[0]
        body = request.body or b""
        body = body if isinstance(body, bytes) else body.encode()
        message = timestamp.encode() + request.method.encode() + path.encode() + body
        code = hmac.new(base64.urlsafe_b64decode(account["secret"]), message, hashlib.sha256)
        give(request, self.family, {
            "ADDRESS": account["address"],
            "API_KEY": account["apiKey"],
            "PASSPHRASE": account["passphrase"],
            "TIMESTAMP": timestamp,
            "SIGNATURE": base64.urlsafe_b64encode(code.digest()).decode(),
        })
        return request


class Level1(requests.auth.AuthBase):
    """The headers of an owner who signs with its wallet."""

    def __init__(self, family):
        self.family = family

    def __call__(self, request):
        timestamp = str(int(time.time()))
        give(request, self.family, {
            "ADDRESS": account["address"],
            "TIMESTAMP": timestamp,
            "NONCE": "0",
            "SIGNATURE": clob_auth(timestamp),
        })
        return request


def give(request, family, values):
    for name, value in values.items():
        request.headers[f"{family}_{name}"] = value


def clob_auth(timestamp):
    """The EIP-712 message that an owner signs for its key with nonce 0."""
    message = {
        "address": account["address"],
        "timestamp": timestamp,
        "nonce": 0,
        "message": "This message attests that I control the given wallet",
    }
    fields = [("address", "address"), ("timestamp", "string"), ("nonce", "uint256"), ("message", "string")]
    types = {"ClobAuth": [{"name": name, "type": kind} for name, kind in fields]}
    domain = {"name": "ClobAuthDomain", "version": "1", "chainId": 80002}
    signable = encode_typed_data(domain, types, message)
    return "0x" + Account.sign_message(signable, account["key"]).signature.hex().removeprefix("0x")


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """`default` is for bytes that are no request of the operation. Without it every status that an
    operation does not name is a failure. The order of the examples is one that is there."""
    for path, methods in raw_schema["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("default")
            if path == "/data/order/{id}":
                operation["parameters"][0]["example"] = account["order"]


@schemathesis.hook
def filter_case(context, case):
    """An empty parameter is an absent one, of whatever type: the document says so in words, because
    schemas cannot. Lists and objects of nothing are written as empty ones."""
    return not any(map(is_empty, (case.query or {}).values()))


def is_empty(value):
    return value in ("", None) or (isinstance(value, (list, dict)) and all(map(is_empty, value)))


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw
    if operation["operationId"] in DESTRUCTIVE:
        return
    requirements = operation.get("security", case.operation.schema.raw_schema["security"])
    if not requirements:
        return
    family = family_of(case)
    needs_key = any(name.endswith("_API_KEY") for name in requirements[0])
    kwargs["auth"] = Level2(family) if needs_key else Level1(family)


@schemathesis.hook
def after_call(context, case, response):
    if f"{family_of(case)}_SIGNATURE" not in response.request.headers:
        return
    operation = case.operation.definition.raw["operationId"]
    signed[operation][response.status_code] += 1


def family_of(case):
    """The family of the headers: derived from the request, so that a failure can be repeated."""
    text = repr((case.path_parameters, case.query, case.body))
    return FAMILIES[int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % len(FAMILIES)]
