#!/usr/bin/env python3
"""validate_report.py PAGE...: prints the faults of each HTML report of gemm-inspect.

A page is well-formed XML and balanced HTML, holds the report's one script and one style sheet and no other way to run code or
to load anything, and each of its drawings has finite numbers inside its view box. Exits 0 when all pages are so, 1 when not.
"""
import html.parser
import math
import re
import sys
import xml.etree.ElementTree as xml

EMPTY = {"meta", "input"}
COORDINATES = {"x": 2, "x1": 2, "x2": 2, "cx": 2, "y": 3, "y1": 3, "y2": 3, "cy": 3}  # place of its limit in the view box


class Balance(html.parser.HTMLParser):
    """Tags as a browser sees them; a self-closed one of SVG counts as closed."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.scripts = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")


def local(name):
    return name.split("}")[-1]


def reference_faults(root):
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.startswith("on") or name == "src" or (name == "href" and not value.startswith("#")):
                yield f"<{local(element.tag)} {name}={value!r}> runs or loads something"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    if len(ids) != len(set(ids)):
        yield "an id is there twice"
    for element in root.iter():
        if element.get("href") and element.get("href")[1:] not in ids:
            yield f"{element.get('href')} leads nowhere"


def drawing_faults(svg):
    box = [float(number) for number in svg.get("viewBox").split()]
    for element in svg.iter():
        for name, value in element.attrib.items():
            if name in COORDINATES:
                number = float(value)
                if not (math.isfinite(number) and 0 <= number <= box[COORDINATES[name]]):
                    yield f"{name}={value} lies outside of the drawing"
        for number in re.split("[ ,]", element.get("points", "0")):
            if not math.isfinite(float(number)):
                yield f"a line goes through {number}"


def faults_of(text):
    try:
        root = xml.fromstring(text)
    except xml.ParseError as error:
        return [f"no XML: {error}"]
    balance = Balance()
    balance.feed(text)
    faults = balance.faults + [f"<{tag}> stays open" for tag in balance.open]
    tags = [local(element.tag) for element in root.iter()]
    if balance.scripts != 1 or tags.count("script") != 1 or tags.count("style") != 1:
        faults.append("not one script and one style sheet")
    if re.search(r"url\(|@import|fetch\(|XMLHttpRequest", text):
        faults.append("it loads something")
    faults += reference_faults(root)
    for element in root.iter():
        if local(element.tag) == "svg":
            faults += drawing_faults(element)
    return faults


def main():
    faulty = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for fault in faults_of(file.read()):
                print(f"{path}: {fault}")
                faulty = 1
    return faulty


if __name__ == "__main__":
    sys.exit(main())
