#!/usr/bin/env python3
"""Joins two network namespaces by a wire with a delay, which `tc` alone cannot make on every kernel.

Usage: relay.py NAME ADDRESS NAME ADDRESS BITS_PER_SECOND MILLISECONDS. Each namespace gets an interface `wire` with its address; what one
sends reaches the other at this rate, and this time later. Runs until it is killed."""
import collections
import ctypes
import fcntl
import os
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000
PACKET = 9000
QUEUE = 1 << 20  # bytes of each direction; what exceeds them is lost, as at a router


def interface(name, address):
    """Creates the interface in a namespace. Returns its file."""
    with open(f"/run/netns/{name}", encoding="ascii") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"{name}: cannot be entered")
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", b"wire", IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", address + "/24", "dev", "wire"], ["link", "set", "wire", "mtu", str(PACKET), "up"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    return file


class Direction:
    def __init__(self, source, target, rate, delay):
        self.source, self.target, self.rate, self.delay = source, target, rate, delay
        self.free = 0.0  # when the last packet has left
        self.packets, self.bytes = collections.deque(), 0

    def read(self):
        while True:
            try:
                packet = os.read(self.source, PACKET)
            except BlockingIOError:
                return
            now = time.monotonic()
            if self.bytes + len(packet) > QUEUE:
                continue
            self.free = max(self.free, now) + 8 * len(packet) / self.rate
            self.packets.append((self.free + self.delay, packet))
            self.bytes += len(packet)

    def write(self):
        """Delivers what is due. Returns the seconds until the next packet is."""
        while self.packets:
            left = self.packets[0][0] - time.monotonic()
            if left > 0:
                return left
            packet = self.packets.popleft()[1]
            self.bytes -= len(packet)
            os.write(self.target, packet)
        return None


def main():
    one, other = interface(*sys.argv[1:3]), interface(*sys.argv[3:5])
    rate, delay = float(sys.argv[5]), float(sys.argv[6]) / 1e3
    directions = [Direction(one, other, rate, delay), Direction(other, one, rate, delay)]
    waiting = selectors.DefaultSelector()
    for direction in directions:
        waiting.register(direction.source, selectors.EVENT_READ, direction)
    print("ready", flush=True)
    while True:
        times = [left for left in (direction.write() for direction in directions) if left is not None]
        for key, _ in waiting.select(min(times) if times else None):
            key.data.read()


if __name__ == "__main__":
    main()
