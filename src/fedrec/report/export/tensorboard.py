"""TensorBoard: an event file per run, written without TensorFlow."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.report.export.history import Numbers
from fedrec.runs.settings import RunSettings


class TensorBoard:
    """Scalars below ``folder/NAME``. A second export takes the place of the first: TensorBoard drops what it had."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise BadInput("--tensorboard needs another package: pip install 'fedrec[tensorboard]'") from None
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"--tensorboard {folder} is a file; give a folder")
        self.folder, self.events, self.summaries, self.open = folder, event_pb2, summary_pb2, EventFileWriter
        self.writer: Any = None
        self.began = 0.0

    def begin(self, name: str, key: str, settings: RunSettings) -> int:
        self.began = time.time()
        self.writer = self.open(str(self.folder / name))
        start = self.events.SessionLog(status=self.events.SessionLog.START)
        self.writer.add_event(self.events.Event(wall_time=self.began, step=0, session_log=start))
        return 0

    def round(self, number: int, seconds: float, values: Numbers) -> None:
        entries = [self.summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        summary = self.summaries.Summary(value=entries)
        self.writer.add_event(self.events.Event(wall_time=self.began + seconds, step=number, summary=summary))
        self.writer.flush()

    def end(self, number: int, values: Numbers) -> None:
        self.round(number, time.time() - self.began, values)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
