#!/usr/bin/env python3
"""Packs a folder into a `.zip` beside it, the same bytes each time: release/zip.py OUT FOLDER."""
import os, sys, time, zipfile

out, folder = sys.argv[1:]
moment = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
within = []
for place, _, names in os.walk(os.path.join(out, folder)):
    within += [os.path.relpath(os.path.join(place, name), out) for name in names]
with zipfile.ZipFile(os.path.join(out, folder + ".zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name in sorted(within):
        entry = zipfile.ZipInfo(name, moment)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if name.endswith(".exe") else 0o100644) << 16
        # As on Unix, whatever machine packs it.
        entry.create_system = 3
        with open(os.path.join(out, name), "rb") as file:
            archive.writestr(entry, file.read())
