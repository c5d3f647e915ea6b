"""Write docs/openapi.json anew: python tests/service/describe.py."""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from sidestep.service.app import create_app  # noqa: E402
from sidestep.service.settings import Settings  # noqa: E402
from sidestep.studies.storage.sql import SqlStore  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    store = SqlStore.open(Path(folder) / "empty.db")
    description = create_app(Settings(), store).openapi()
    store.close()
target = ROOT / "docs" / "openapi.json"
target.write_text(json.dumps(description, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
print(f"{target}: {len(description['paths'])} paths")
