from __future__ import annotations

from pathlib import Path
from typing import Any


def write(data: dict[str, Any], wanted: Any, folder: Path) -> str:
    return "stub"
