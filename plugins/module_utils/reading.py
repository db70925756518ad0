# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Files read as a whole: only real ones, and no more than fits. A pipe would keep the run waiting for ever."""

from __future__ import annotations

import errno
import os
import stat
from typing import Tuple

#: The most bytes of a file. A manifest with a hundred thousand rules has about half of it.
LARGEST_FILE = 32 * 1024 * 1024


def read_whole(path: str, largest: int = LARGEST_FILE) -> Tuple[bytes, int]:
    """The content and the mode of an ordinary file.

    Raises OSError, also for anything that is no file and for one that is too large, and ValueError for a text that
    cannot be the name of a file.
    """
    # O_NONBLOCK: opening a named pipe waits for somebody who writes to it.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file")
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} bytes")
    return content, mode
