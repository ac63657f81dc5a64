"""Pages opened in a browser without a network."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
HINTS = ("Canvas2D", "Performance", "GPU stall")  # about speed without a GPU


def browse(page: bytes, folder: Path, script: str = "") -> tuple[str, list[str]]:
    """Return the document after its scripts have run, and what they said on the console.

    script: runs after those of the page
    """
    if BROWSER is None:
        pytest.skip("no chromium or google-chrome")
    file = folder / "opened.html"
    file.write_bytes(page.replace(b"</body>", f"<script>{script}</script></body>".encode()))
    run = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
            "--enable-logging=stderr", "--proxy-server=127.0.0.1:9", "--window-size=400,900",
            "--virtual-time-budget=20000", "--dump-dom", f"--user-data-dir={folder / 'profile'}",
            file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = re.findall(r'CONSOLE[^"]*"(.*)", source:', run.stderr)
    return run.stdout, [text for text in said if not any(hint in text for hint in HINTS)]
