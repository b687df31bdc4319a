#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the Debian package of the program is made of, as an SPDX 2.3 document in JSON; see scripts/deb.

    sbom.py PROGRAM VERSION RESOLVED SWIFT [--static PACKAGE…] [--dynamic PACKAGE…]

PROGRAM is the program as it is in the package, RESOLVED the Package.resolved of its build, SWIFT the version of the toolchain, whose
libraries are part of the program. Debian's packages are those whose libraries are part of it, and those that it loads; what these load
themselves is not listed, as the system's own package manager knows it. SOURCE_DATE_EPOCH is the time of the document. The same input
gives the same bytes.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import urllib.parse

DOCUMENT = "SPDXRef-DOCUMENT"
PROGRAM = "SPDXRef-curlew"


def package(name, version, **fields):
    """A package of which no more is known than is given: licenses and copyrights are not looked for."""
    identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
    return {
        "SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
    } | fields


def locator(text):
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": text}]


def swift_packages(resolved):
    pins = json.loads(pathlib.Path(resolved).read_text())["pins"]
    for pin in sorted(pins, key=lambda pin: pin["identity"]):
        revision = pin["state"]["revision"]
        version = pin["state"].get("version", revision)
        place = pin["location"].removesuffix(".git")
        address = urllib.parse.urlsplit(place)
        yield package(
            pin["identity"], version, downloadLocation=f"git+{place}@{revision}",
            externalRefs=locator(f"pkg:swift/{address.netloc}{address.path}@{urllib.parse.quote(version)}"))


def debian_package(name):
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version} ${Architecture} ${source:Package}", name], check=True, capture_output=True, text=True)
    version, architecture, source = query.stdout.split()
    system = platform.freedesktop_os_release()["ID"]
    return package(
        name, version, sourceInfo=f"source package {source} of {system}",
        externalRefs=locator(f"pkg:deb/{system}/{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?arch={architecture}"))


def document(arguments):
    program = pathlib.Path(arguments.program).read_bytes()
    digest = hashlib.sha256(program).hexdigest()
    parts = [(each, "STATIC_LINK") for each in swift_packages(arguments.resolved)]
    parts.append((package("swift-runtime", arguments.swift, comment="The standard library, Foundation and Dispatch of the toolchain."),
                  "STATIC_LINK"))
    parts += [(debian_package(name), "STATIC_LINK") for name in sorted(set(arguments.static))]
    parts += [(debian_package(name), "DYNAMIC_LINK") for name in sorted(set(arguments.dynamic))]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    curlew = package(
        "curlew", arguments.version, primaryPackagePurpose="APPLICATION", licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0",
        comment=f"SHA-256 of /usr/bin/curlew: {digest}")
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": DOCUMENT, "name": f"curlew-{arguments.version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/curlew-{arguments.version}-{digest}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: curlew-scripts-sbom"]},
        "comment": "Of Debian's packages that the program loads, the versions are those of the machine on which it was built.",
        "packages": [curlew] + [each for each, _ in parts],
        "relationships": [{"spdxElementId": DOCUMENT, "relationshipType": "DESCRIBES", "relatedSpdxElement": PROGRAM}] + [
            {"spdxElementId": PROGRAM, "relationshipType": kind, "relatedSpdxElement": each["SPDXID"]} for each, kind in parts],
    }


def check(made, names):
    """Ends the program if the document breaks a rule of SPDX that its maker could break, or lacks a part that was asked for."""
    identifiers = [each["SPDXID"] for each in made["packages"]]
    rules = [
        (len(set(identifiers)) == len(identifiers), "two packages have one identifier"),
        (all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in identifiers), "an identifier has other characters"),
        (all(each["name"] and each["versionInfo"] for each in made["packages"]), "a package has no name or version"),
        (not any(character in made["documentNamespace"] for character in "# "), "the namespace is no URI without a fragment"),
        ({each["relatedSpdxElement"] for each in made["relationships"]} == set(identifiers), "a package has no relationship"),
        (names <= {each["name"] for each in made["packages"]}, "a package is missing"),
    ]
    for holds, what in rules:
        if not holds:
            sys.exit(f"scripts/sbom.py: {what}")


parser = argparse.ArgumentParser()
for name in ("program", "version", "resolved", "swift"):
    parser.add_argument(name)
for name in ("--static", "--dynamic"):
    parser.add_argument(name, nargs="*", default=[])
arguments = parser.parse_args()
made = document(arguments)
check(made, {"curlew", "swift-runtime", *arguments.static, *arguments.dynamic})
json.dump(made, sys.stdout, indent=2, sort_keys=True)
print()
