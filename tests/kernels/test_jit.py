"""Where compiled functions are kept."""

import time
from concurrent.futures import ThreadPoolExecutor

from numba.core import config

from kernels import jit


def test_cache__is_the_same_folder_for_threads_that_load_modules_at_once() -> None:
    before = config.CACHE_DIR

    def folder(_: int) -> str:
        with jit._own_cache():
            time.sleep(0.005)
            return str(config.CACHE_DIR)

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(folder, range(20)))
    assert found == {str(jit._folder(before))}
    assert before == config.CACHE_DIR
