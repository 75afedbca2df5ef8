# SPDX-License-Identifier: MIT
"""How much a disk is given at a time: real block devices, made of files."""

import os
import subprocess
from pathlib import Path

import pytest

import wire
from agent import ALICE, BOB
from daemon import assert_refused, policy_text, wait_until
from resources import Disk

QUEUE = wire.WANT_BLOCK_QUEUE
POLICY = {"Role desktop": {"BlockQueue": "16-512"}}


@pytest.fixture
def broker(daemon):
    daemon.reload(policy_text(POLICY))
    return daemon


def ask(client, disk, kb, **values):
    block = disk if isinstance(disk, str) else disk.name
    return client.acquire(want=QUEUE, block=block, block_max_sectors_kb=kb, role="desktop", **values)


def test_the_lowest_of_two_is_in_force_and_what_was_there_comes_back(broker, disk):
    one, two = broker.client(ALICE), broker.client(BOB)

    first = ask(one, disk, 128)
    assert (first.reason, first.block_max_sectors_kb, first.granted_want) == ("none", 128, QUEUE)
    assert disk() == 128
    second = ask(two, disk.number(), 64)
    assert (second.reason, disk()) == ("none", 64)
    assert [(x.uid, x.block, x.block_max_sectors_kb) for x in broker.leases()] == [
        (ALICE, disk.name, 128), (BOB, disk.name, 64)]

    two.release(second.id)
    assert disk() == 128
    one.kill()
    wait_until(lambda: disk() == disk.before)


def test_the_range_of_the_role(broker, disk):
    client = broker.client(ALICE)

    assert_refused(ask(client, disk, 15), "resource-limit")
    assert_refused(ask(client, disk, 513), "resource-limit")
    assert_refused(ask(client, disk, 2**32 - 1), "resource-limit")
    assert disk() == disk.before
    assert ask(client, disk, 8, flags=wire.ACQUIRE_CLAMP).block_max_sectors_kb == 16
    assert disk() == 16


@pytest.mark.parametrize("name", [
    "nonexistent", "../../../etc", "/dev/loop0", "0:0", "4294967295:4294967295", "7:0:0", "1:3",
    ".", "..", "loop0/queue", "-1:0", "7: 0", "loop0\n", "a" * 63])
def test_names_that_mean_no_disk(broker, name):
    assert_refused(ask(broker.client(ALICE), name, 64), "no-such-device")
    assert broker.leases() == []


def test_an_administrator_s_lower_value_stays(broker, disk):
    client = broker.client(ALICE)
    disk.queue.write_text("32")

    lease = ask(client, disk, 64).id

    assert disk() == 32
    client.release(lease)
    assert disk() == 32


def test_what_others_set_meanwhile_is_left_alone(broker, disk):
    client = broker.client(ALICE)
    lease = ask(client, disk, 64).id
    disk.queue.write_text("256")

    wait_until(lambda: broker.leases()[0].state == wire.LEASE_CHANGED)
    client.release(lease)

    assert disk() == 256


def test_renew_puts_it_in_force_again(broker, disk):
    client = broker.client(ALICE)
    lease = ask(client, disk, 64).id
    disk.queue.write_text("256")

    assert client.renew(lease).reason == "none"

    assert disk() == 64


def test_another_disk_instead(broker, disk, directory):
    client = broker.client(ALICE)
    other_dir = Path(directory) / "other-disk"
    other_dir.mkdir()
    other = Disk(other_dir)
    try:
        ask(client, disk, 64)
        ask(client, other, 32)
        assert (disk(), other()) == (disk.before, 32)
        assert [x.block for x in broker.leases()] == [other.name]
    finally:
        client.kill()
        wait_until(lambda: broker.leases() == [])
        other.close()
        other_dir.rmdir()


@pytest.mark.parametrize("holder_ends", [False, True])
def test_killed_and_started_again(make_daemon, disk, holder_ends):
    daemon = make_daemon().start(POLICY)
    client = daemon.client(ALICE)
    lease = ask(client, disk, 64).id

    daemon.kill()
    assert disk() == 64
    if holder_ends:
        client.kill()
    daemon.start(POLICY)

    if holder_ends:
        assert disk() == disk.before
    else:
        assert [x.id for x in daemon.leases()] == [lease]
        client.reconnect()
        client.release(lease)
        assert disk() == disk.before


def test_a_clean_stop_restores(broker, disk):
    ask(broker.client(ALICE), disk, 64)

    broker.stop()

    assert disk() == disk.before


def test_a_reload_raises_it_to_the_new_limit(broker, disk):
    ask(broker.client(ALICE), disk, 64)

    broker.reload(policy_text({"Role desktop": {"BlockQueue": "100-512"}}))

    assert disk() == 100


def test_a_disk_that_goes(broker, disk):
    """The device of a loop stays when its file is detached; the lease ends cleanly all the same."""
    client = broker.client(ALICE)
    lease = ask(client, disk, 64).id
    subprocess.run(["losetup", "-d", disk.path], check=True)
    try:
        assert client.release(lease).reason == "none"
    finally:
        subprocess.run(["losetup", disk.path, disk.file], check=True)
    assert ask(client, disk, 64).reason == "none"


def test_a_partition_means_its_disk(broker, disk):
    client = broker.client(ALICE)
    partition = f"{disk.name}p1"
    subprocess.run(["addpart", disk.path, "1", "2048", "4096"], check=True)
    try:
        assert ask(client, partition, 64).reason == "none"
        assert disk() == 64
        assert [x.block for x in broker.leases()] == [disk.name]
    finally:
        subprocess.run(["delpart", disk.path, "1"], check=True)


def test_the_program_finds_the_disk_of_a_path(broker, disk, directory):
    """The path is looked up by the caller, with no more rights than it has."""
    where = Path(directory) / "mounted"
    where.mkdir()
    secret = Path(directory) / "secret"
    secret.mkdir(mode=0o700)
    subprocess.run(["mkfs.ext4", "-q", disk.path], check=True)
    subprocess.run(["mount", disk.path, where], check=True)
    try:
        run = broker.rtgrant(ALICE, "--role", "desktop", f"--block-queue={where}=64", "-o",
                             "cat", f"/sys/block/{disk.name}/queue/max_sectors_kb")
        assert (run.returncode, run.stdout) == (0, "64\n"), run.stderr
        wait_until(lambda: disk() == disk.before)

        run = broker.rtgrant(ALICE, f"--block-queue={secret}/x=64", "true")
        assert run.returncode != 0
        assert "Permission denied" in run.stderr
    finally:
        subprocess.run(["umount", where], check=True)
        where.rmdir()
        secret.rmdir()
