"""BGZF made by hand, as bgzip would, in blocks of any size."""

import struct
import zlib

BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def bgzf_block(data: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\x00BC\x02\x00"
    trailer = struct.pack("<II", zlib.crc32(data), len(data))
    return header + struct.pack("<H", len(body) + 25) + body + trailer


def bgzf(data: bytes, block: int = 20, end: bytes = BGZF_END) -> bytes:
    """Return content as BGZF, in blocks of `block` bytes and with the end marker."""
    return b"".join(bgzf_block(data[at : at + block]) for at in range(0, len(data), block)) + end
