"""The files of an installation, where its settings say that they are."""

from pathlib import Path

from tertulia.store.bucket_files import BucketFiles, S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files
from tertulia.store.moving_files import MovingFiles
from tertulia.store.s3_address import s3_address


def files_at(url: str, disk: DiskFiles, keys: S3Keys) -> Files:
    """The files at the place that a setting names. ValueError for what is none."""
    address = s3_address(url)
    return disk if address is None else BucketFiles(address, keys, disk)


def opened_files(directory: Path, url: str, also_at: str, keys: S3Keys) -> tuple[Files, DiskFiles]:
    """The files at `url`, with those at `also_at` (empty: nowhere else) that are not there yet; and
    the disk, below that directory, whether files are on it or only arrive there."""
    disk = DiskFiles(directory)
    files = files_at(url, disk, keys)
    return (MovingFiles(files, files_at(also_at, disk, keys)) if also_at else files), disk
