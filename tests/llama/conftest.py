from collections.abc import Iterator
from pathlib import Path

import engine as engines
import model
import pytest


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, made anew: its tokens are of words that never change."""
    path = tmp_path_factory.mktemp("model") / "random.gguf"
    words = Path(__file__).parents[2] / "LICENSE-APACHE"
    model.make(path, words.read_text(encoding="utf-8"))
    return path


@pytest.fixture(scope="session")
def engine(weights: Path) -> Iterator[engines.Engine]:
    with engines.started(weights) as engine:
        yield engine


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path
