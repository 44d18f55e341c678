#!/usr/bin/env python3
"""validate_table.py SCHEMA TABLE...: prints the first fault of each table that does not keep to the schema.

Exits 0 when all keep to it, 1 when not.
"""
import json
import sys

import jsonschema


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    schema = load(sys.argv[1])
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faulty = 0
    for path in sys.argv[2:]:
        for fault in validator.iter_errors(load(path)):
            print(f"{path}: {fault.json_path}: {fault.message[:200]}")
            faulty = 1
            break
    return faulty


sys.exit(main())
