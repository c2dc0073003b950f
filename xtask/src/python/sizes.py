"""Prints the compressed bytes of a wheel's parts as JSON."""

import json
import os
import sys
import zipfile

PARTS = {"/scripts/": "program", "share/switchyard/policies/": "policies", "share/switchyard/zoo/": "zoo"}

wheel = sys.argv[1]
sizes = dict.fromkeys(["module", "program", "policies", "zoo", "other"], 0)
for entry in zipfile.ZipFile(wheel).infolist():
    parts = [part for mark, part in PARTS.items() if mark in entry.filename]
    is_module = entry.filename.startswith("switchyard/")
    part = "module" if is_module else parts[0] if parts else "other"
    sizes[part] += entry.compress_size
print(json.dumps({**sizes, "wheel": os.path.getsize(wheel)}))
