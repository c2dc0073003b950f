"""Prints the files of a wheel, and the compressed bytes of its parts, as JSON."""

import json
import os
import sys
import zipfile

PARTS = {"/scripts/": "program", "share/switchyard/policies/": "policies", "share/switchyard/zoo/": "zoo"}

wheel = sys.argv[1]
sizes = dict.fromkeys(["module", "program", "policies", "zoo", "other"], 0)
entries = zipfile.ZipFile(wheel).infolist()
for entry in entries:
    parts = [part for mark, part in PARTS.items() if mark in entry.filename]
    is_module = entry.filename.startswith("switchyard/")
    part = "module" if is_module else parts[0] if parts else "other"
    sizes[part] += entry.compress_size
files = [entry.filename for entry in entries]
print(json.dumps({**sizes, "wheel": os.path.getsize(wheel), "files": files}))
