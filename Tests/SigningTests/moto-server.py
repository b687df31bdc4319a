# SPDX-License-Identifier: Apache-2.0
"""Runs moto, a server with the interfaces of AWS's services, on a port that the system chose, until the end of its input.

Prints the port and the key of a user who may do everything, and the role that a web identity may assume, as a line of JSON. moto verifies
signatures, with botocore, once /moto-api/reset-auth has received a 0.
"""
import json
import logging
import sys

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()

iam = boto3.client(
    "iam", region_name="us-east-1", endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id="setup", aws_secret_access_key="setup")
everything = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
iam.create_user(UserName="user")
iam.put_user_policy(UserName="user", PolicyName="all", PolicyDocument=everything)
key = iam.create_access_key(UserName="user")["AccessKey"]
trust = json.dumps({
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRoleWithWebIdentity", "Resource": "*"}],
})
role = iam.create_role(RoleName="role", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
iam.put_role_policy(RoleName="role", PolicyName="all", PolicyDocument=everything)

print(json.dumps({"port": port, "id": key["AccessKeyId"], "secret": key["SecretAccessKey"], "role": role}), flush=True)
sys.stdin.read()
