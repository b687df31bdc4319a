#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prepares symbol graphs and catalogs for docc, and checks that every public symbol has a doc comment and stands in a topic.

    graphs.py GRAPHS BLOCKS HOMES SOURCES OUTPUT

GRAPHS is a folder of symbol graphs, one a module; BLOCKS another, with a symbol for each extension; HOMES a file with the module that a
reader imports for each; SOURCES the folder with the modules' catalogs; OUTPUT gets `graphs` and `Curlew.docc`. Four things differ from
what the compiler writes:

- The layers of the product `Curlew` are one module, as `import Curlew` shows them; those of `CurlewTesting` too.
- A link that names a type of another product gets the name of its module, which docc does not look for by itself.
- Extensions of types outside the package are from BLOCKS, so that their members have pages, below the module that has them; that of the
  type is named as a program imports it.
- Members that `CurlewAlamofire` adds to types of Curlew under a name that is there already are left out: they would make each
  link to that name ambiguous. «Coming from Alamofire 4» has a line for each.
"""

import json
import pathlib
import re
import shutil
import sys

# The module that a reader imports, for each; read from the file.
HOME = {}

# What a program imports, for modules of the toolchain that it need not know.
PUBLIC = {"_Concurrency": "Swift", "FoundationEssentials": "Foundation", "FoundationNetworking": "Foundation"}

LINK = re.compile(r"``([^`\n]+)``")


def home(module):
    return HOME.get(module, module)


class Graphs:
    """The symbols of all products, by the module that a reader imports."""

    def __init__(self, folder, blocks):
        # (module, extended module or None): graph
        self.graphs = {}
        self.modules = set()
        for path in sorted(folder.glob("*.symbols.json")):
            names = path.name.removesuffix(".symbols.json").split("@")
            module, extended = home(names[0]), home(names[-1]) if len(names) > 1 else None
            if extended == module:
                extended = None
            if extended and extended not in HOME.values():
                path, extended = blocks / path.name, PUBLIC.get(extended, extended)
            graph = json.loads(path.read_text(encoding="utf-8"))
            graph["module"]["name"] = module
            for symbol in graph["symbols"]:
                extension = symbol.get("swiftExtension", {})
                if extension.get("extendedModule") in PUBLIC:
                    extension["extendedModule"] = PUBLIC[extension["extendedModule"]]
            known = self.graphs.setdefault((module, extended), graph)
            if known is not graph:
                known["symbols"] += graph["symbols"]
                known["relationships"] += graph["relationships"]
            self.modules.update((names[0], module))
        self.leave_out_namesakes()
        self.top_level = {}  # name: modules
        self.nested = {}  # module: names of nested types
        for (module, extended), graph in self.graphs.items():
            if extended:
                continue
            for symbol in graph["symbols"]:
                components = symbol["pathComponents"]
                if len(components) == 1:
                    self.top_level.setdefault(components[0], set()).add(module)
                elif components[-1][:1].isupper():
                    self.nested.setdefault(module, set()).add(components[-1])

    def leave_out_namesakes(self):
        """Members of other modules with the path of one in the extended module itself."""
        for (module, extended), graph in self.graphs.items():
            own = self.graphs.get((extended, None))
            if module != "CurlewAlamofire" or own is None:
                continue
            # Without parameters: a link may leave them out.
            taken = {tuple(part.split("(")[0] for part in symbol["pathComponents"]) for symbol in own["symbols"]}
            left = [s for s in graph["symbols"] if tuple(p.split("(")[0] for p in s["pathComponents"]) not in taken]
            gone = {s["identifier"]["precise"] for s in graph["symbols"]} - {s["identifier"]["precise"] for s in left}
            graph["symbols"] = left
            graph["relationships"] = [r for r in graph["relationships"] if r["source"] not in gone]

    def qualified(self, text, module):
        """The text with each link to another product's symbol beginning with that product's module."""

        def replace(match):
            link = match.group(1)
            first, *rest = link.removeprefix("/").split("/", 1)
            if link.startswith("/") or rest and first in self.modules:
                return "``/" + "/".join([home(first), *rest]) + "``"
            name = re.split(r"[/(\-]", link)[0]
            whole = link.split("/")[0]
            modules = self.top_level.get(name) or self.top_level.get(re.sub(r"-\(.*", "", whole)) or self.top_level.get(whole)
            if not modules or module in modules or name in self.nested.get(module, ()) or len(modules) > 1:
                return match.group(0)
            return f"``/{next(iter(modules))}/{link}``"

        return LINK.sub(replace, text)

    def write(self, folder):
        folder.mkdir(parents=True)
        for (module, extended), graph in self.graphs.items():
            for symbol in graph["symbols"]:
                for line in symbol.get("docComment", {}).get("lines", []):
                    line["text"] = self.qualified(line["text"], extended if extended in HOME.values() else module)
            name = f"{module}@{extended}" if extended else module
            (folder / f"{name}.symbols.json").write_text(json.dumps(graph), encoding="utf-8")


def write_catalog(graphs, sources, catalog):
    """All catalogs in one, so that articles link to each other and are found by one search."""
    catalog.mkdir(parents=True)
    for source in sorted(sources.glob("*/*.docc")):
        for path in sorted(p for p in source.rglob("*") if p.is_file()):
            target = catalog / path.name
            if target.exists():
                sys.exit(f"{path}: another catalog has a file of this name")
            if path.suffix not in (".md", ".tutorial"):
                shutil.copy(path, target)
                continue
            text = path.read_text(encoding="utf-8")
            title = re.match(r"# ``(\w+)``", text)
            module = title.group(1) if title else "Curlew"
            if title:
                head, _, rest = text.partition("\n")
                text = head + "\n" + graphs.qualified(rest, module)
            else:
                text = graphs.qualified(text, "Curlew")
            target.write_text(text, encoding="utf-8")


def outside_topics(graphs, catalog):
    """The top-level symbols that no section `Topics` of the catalog links to; members stand in the topics of their types."""
    linked = set()
    for path in catalog.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        title = re.match(r"# ``/?(\w+)", text)
        module = title.group(1) if title else "Curlew"
        for link in LINK.findall(text.partition("\n## Topics\n")[2]):
            parts = link[1:].split("/") if link.startswith("/") else [module, link]
            linked.add((parts[0], re.sub(r"-(\(.*|[a-z0-9]+|[a-z]+\.[a-z.]+)$", "", parts[1]) if len(parts) > 1 else ""))
    missing = set()
    for name, modules in graphs.top_level.items():
        for module in modules:
            if (module, name) not in linked:
                missing.add(f"``/{module}/{name}``")
    return sorted(missing)


def undocumented(graphs):
    """Public symbols without a doc comment, as FILE:LINE: NAME; the compiler gives inherited ones that of what they implement."""
    missing = set()
    for graph in graphs.graphs.values():
        for symbol in graph["symbols"]:
            lines = symbol.get("docComment", {}).get("lines", [])
            # Without a location the compiler has made it, for a property wrapper for instance.
            is_extension = symbol["kind"]["identifier"] == "swift.extension"
            if "location" in symbol and not is_extension and not any(line["text"].strip() for line in lines):
                location = symbol["location"]
                line = location["position"]["line"] + 1
                missing.add(f"{location['uri'].removeprefix('file://')}:{line}: {'.'.join(symbol['pathComponents'])}")
    return sorted(missing)


def main():
    source, blocks, homes, sources, output = map(pathlib.Path, sys.argv[1:6])
    HOME.update(json.loads(homes.read_text(encoding="utf-8")))
    shutil.rmtree(output / "graphs", ignore_errors=True)
    shutil.rmtree(output / "Curlew.docc", ignore_errors=True)
    graphs = Graphs(source, blocks)
    graphs.write(output / "graphs")
    write_catalog(graphs, sources, output / "Curlew.docc")
    bare = undocumented(graphs)
    if bare:
        print(f"{len(bare)} public symbols have no doc comment:", *bare, sep="\n", file=sys.stderr)
        sys.exit(1)
    missing = outside_topics(graphs, output / "Curlew.docc")
    count = sum(map(len, graphs.top_level.values()))
    if missing:
        print(f"{len(missing)} of {count} public symbols stand in no topic. These lines belong below a heading of ## Topics, in the page "
              "of their module, Sources/NAME/MODULE.docc/MODULE.md:", *(f"- {link}" for link in missing), sep="\n", file=sys.stderr)
        sys.exit(1)
    print(f"{count} public symbols at the top level, each in a topic")


main()
