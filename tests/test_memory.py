"""What Linux tells of memory."""

from pathlib import Path

from parity.memory import larger_batch_fits, peak_bytes, room_bytes


def test_memory_is_told_by_the_system_or_not_at_all(tmp_path: Path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("Name:\tpython\nVmHWM:\t  5120 kB\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert peak_bytes(proc=tmp_path) == 5120 * 1024
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 4000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 2_000_000
    for idle, room in ((900_000, 2_900_000), (0, 2_000_000), (1_500_000, 3_000_000)):
        (tmp_path / "memory.stat").write_text(f"anon 100000\nfile 900000\ninactive_file {idle}\nodd\n")
        assert room_bytes(proc=tmp_path, cgroup=tmp_path) == room
    (tmp_path / "memory.max").write_text("max\n")
    assert room_bytes(proc=tmp_path, cgroup=tmp_path) == 4000 * 1024
    assert peak_bytes(7, proc=tmp_path) is None
    assert room_bytes(proc=tmp_path / "none", cgroup=tmp_path / "none") is None


def test_a_larger_batch_fits_when_it_takes_half_of_what_is_left(tmp_path: Path):
    status = tmp_path / "self" / "status"
    status.parent.mkdir()
    status.write_text("VmHWM: 1000 kB\n")
    (tmp_path / "meminfo").write_text("MemAvailable: 600 kB\n")
    fits = larger_batch_fits(proc=tmp_path, cgroup=tmp_path)
    assert fits(8, 16)
    status.write_text("VmHWM: 1200 kB\n")
    assert fits(8, 16)
    assert not fits(8, 32)
    slots = larger_batch_fits(slots=2, proc=tmp_path, cgroup=tmp_path)
    status.write_text("VmHWM: 1400 kB\n")
    assert not slots(8, 16)
    assert larger_batch_fits(proc=tmp_path / "none")(1, 10**9)
