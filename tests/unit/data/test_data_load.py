"""The one door: names, paths, filters, and the sizes of the real data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_files import Write
from fedrec.data.filters import at_least
from fedrec.data.interactions import Interactions
from fedrec.data.load import default_data_dir, load
from fedrec.data.sources import SOURCES, Size, find
from fedrec.data.synthetic import scalable
from fedrec.errors import BadInput
from there import there

RATINGS = "1 1 4\n1 2 3\n1 2 3\n2 1 1\n2 2 2\n2 3 0\n3 9 1\n"


def size(data: Interactions) -> Size:
    return Size(data.n_users, data.n_items, len(data))


def test_registry_name_filter_and_notes(write: Write, tmp_path: Path) -> None:
    write("filmtrust/ratings.txt", RATINGS)
    data = load("filmtrust", tmp_path, min_interactions=2)
    assert data.name == "filmtrust"
    assert size(data) == Size(2, 2, 4)
    assert data.notes == (
        "1 rows with a rating of 0 or less do not count as interactions",
        "1 repeats of a user-item pair merged, the earliest kept",
        "1 users with fewer than 2 interactions left out",
    )


def test_filter_defaults_come_from_paper_then_registry(write: Write, tmp_path: Path) -> None:
    lines = [f"{user} {item} 1" for user, count in ((1, 12), (2, 7), (3, 2)) for item in range(count)]
    write("filmtrust/ratings.txt", "\n".join(lines))
    assert load("filmtrust", tmp_path).user_ids.tolist() == ["1"]
    assert load("filmtrust", tmp_path, paper="fediar").user_ids.tolist() == ["1", "2"]
    assert load("filmtrust", tmp_path, paper="feddae").user_ids.tolist() == ["1"]  # not listed: the default
    assert load("filmtrust", tmp_path, min_interactions=0).user_ids.tolist() == ["1", "2", "3"]
    assert load("filmtrust", tmp_path, min_interactions=2, paper="fedca").n_users == 3


@pytest.mark.parametrize(
    ("name", "default", "papers"),
    [
        ("ml-100k", 0, {"fedca": 10, "fedcia": 0, "feddae": 10}),
        ("ml-1m", 0, {"fedca": 10, "fedcia": 0, "fed3cr": 10, "feddae": 10}),
        ("filmtrust", 10, {"fedca": 10, "fediar": 5}),
        ("douban-book", 5, {"fed3cr": 5}),
        ("lastfm-2k", 10, {"fed3cr": 10, "fediar": 5}),
        ("amazon-video", 5, {"fediar": 5, "feddae": 10}),
        ("qb-article", 10, {"fed3cr": 10, "fediar": 5, "feddae": 10}),
        ("microlens-100k", 10, {"fedca": 10}),
    ],
)
def test_filters_of_the_papers(name: str, default: int, papers: dict[str, int]) -> None:
    source = find(name)
    assert source.filter_for(None) == default
    assert dict(source.filters) == papers
    assert source.papers == tuple(papers)


def test_all_twelve_are_registered() -> None:
    assert len(SOURCES) == 12
    assert all(source.page.startswith("http") and source.licence and source.layouts for source in SOURCES.values())
    with pytest.raises(BadInput, match="did you mean 'ml-100k'"):
        find("ml-100")


def test_nobody_left_after_the_filter(write: Write, tmp_path: Path) -> None:
    write("filmtrust/ratings.txt", RATINGS)
    with pytest.raises(BadInput, match=r"none of 3 users has 10 interactions \(the most is 2\)"):
        load("filmtrust", tmp_path)
    with pytest.raises(BadInput, match="0 or more, not -1"):
        load("filmtrust", tmp_path, min_interactions=-1)


def test_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"run 'fedrec data get ml-1m', or place ratings\.dat or ml-1m\.inter or train"):
        load("ml-1m", tmp_path)
    (tmp_path / "ml-1m").mkdir()
    with pytest.raises(BadInput, match="fedrec data get ml-1m"):
        load("ml-1m", tmp_path)


def test_a_long_folder_takes_no_words_from_what_to_do(tmp_path: Path) -> None:
    deep = tmp_path / ("folder" * 30)
    with pytest.raises(BadInput) as caught:
        load("ml-1m", deep)
    assert "run 'fedrec data get ml-1m', or place ratings.dat or ml-1m.inter or train" in str(caught.value)
    assert str(caught.value).endswith("folderfolder/ml-1m")
    assert len(str(caught.value)) <= 300


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean 'filmtrust'"):
        load("filmtrsut", tmp_path)
    with pytest.raises(BadInput, match=r"no such file or folder: my/data\.csv"):
        load("my/data.csv", tmp_path)
    with pytest.raises(BadInput, match="no such file or folder: /nowhere"):
        load("/nowhere/at/all", tmp_path)


def test_paths_and_folders_below_the_data_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("mine/my.csv", "user,item\na,x\nb,x\n")
    assert load(str(path)).name == "my"
    assert load("mine", tmp_path).name == "mine"
    monkeypatch.chdir(tmp_path / "mine")
    assert size(load("my.csv", Path("/nowhere"))) == Size(2, 1, 2)


def test_publishers_files_win_over_a_ready_split(write: Write, tmp_path: Path) -> None:
    write("ml-1m/train.tsv", "user\titem\n1\t5\n")
    write("ml-1m/test.tsv", "user\titem\n1\t6\n")
    write("ml-1m/movies.dat", "5::Five::x\n6::Six::x\n")
    assert load("ml-1m", tmp_path).part is not None
    write("ml-1m/ratings.dat", "1::5::3::9\n")
    data = load("ml-1m", tmp_path)
    assert data.part is None
    assert there(data.titles).tolist() == ["Five"]


def test_times_win_over_a_ready_split(write: Write, tmp_path: Path) -> None:
    write("ml-1m/train.tsv", "user\titem\n1\t5\n")
    write("ml-1m/test.tsv", "user\titem\n1\t6\n")
    assert load("ml-1m", tmp_path).times is None
    write("ml-1m/ml-1m.inter", "user_id:token\titem_id:token\ttimestamp:float\n1m_1\tAlien (1979)\t7\n")
    data = load("ml-1m", tmp_path)
    assert data.user_ids.tolist() == ["1"]
    assert there(data.times).tolist() == [7]


def test_data_directory_from_environment_then_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path))
    assert default_data_dir() == tmp_path
    monkeypatch.delenv("FEDREC_DATA")
    assert default_data_dir().name == "fedrec"


def test_client_groups_replace_the_datas_own(write: Write) -> None:
    path = write("a.csv", "user,item,client\na,x,n\nb,x,s\nc,x,s\nd,x,s\n")
    assert there(load(str(path)).client_ids).tolist() == ["n", "s"]
    grouped = load(str(path), client_groups=2)
    assert np.bincount(there(grouped.client_of_user)).tolist() == [2, 2]


def test_filter_keeps_ids_titles_clients_and_parts_together(write: Write, tmp_path: Path) -> None:
    write("train.csv", "client,user,item\nn,a,1\nn,a,3\ns,b,2\nt,c,3\n")
    write("test.csv", "client,user,item\nn,a,4\nt,c,1\n")
    write("movies.dat", "".join(f"{item}::T{item}::x\n" for item in range(1, 5)))
    whole = load(str(tmp_path))
    left = load(str(tmp_path), min_interactions=2)
    assert left.user_ids.tolist() == ["a", "c"]
    assert left.item_ids.tolist() == ["1", "3", "4"]
    assert there(left.titles).tolist() == ["T1", "T3", "T4"]
    assert there(left.client_ids)[there(left.client_of_user)].tolist() == ["n", "t"]
    assert there(left.part).tolist() == [0, 0, 2, 0, 2]
    assert at_least(whole, 1) is whole


@given(st.integers(0, 60), st.integers(0, 3))
def test_id_maps_survive_the_filter(least: int, seed: int) -> None:
    data = scalable(users=40, items=60, interactions=600, groups=3, seed=seed)
    counts = np.bincount(data.users, minlength=data.n_users)
    stay = {str(user) for user in np.flatnonzero(counts >= least)}
    before = set(zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), strict=True))
    if not stay:
        with pytest.raises(BadInput):
            at_least(data, least)
        return
    left = at_least(data, least)
    after = set(zip(left.user_ids[left.users].tolist(), left.item_ids[left.items].tolist(), strict=True))
    assert after == {pair for pair in before if pair[0] in stay}
    assert set(left.user_ids.tolist()) == stay
    assert left.times is not None
    assert len(left.times) == len(left)


# -- the real data sets -----------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"), [(source.name, least) for source in SOURCES.values() for least in source.sizes]
)
def test_real_sizes(real_data: Path, name: str, least: int) -> None:
    source = SOURCES[name]
    if source.find(real_data / name) is None:
        pytest.skip(f"{name} is not in FEDREC_DATA")
    data = load(name, real_data, min_interactions=least)
    assert size(data) == source.sizes[least]
    assert (np.diff(data.users) >= 0).all()
    if data.times is not None:
        assert (np.diff(data.times)[np.diff(data.users) == 0] >= 0).all()


@pytest.mark.data
def test_filmtrust_counts_rows_as_the_paper_does(real_data: Path) -> None:
    """FedIAR's Table 1 counts 34,889 rows, three of which repeat a pair."""
    data = load("filmtrust", real_data, paper="fediar")
    assert "3 repeats of a user-item pair merged, the earliest kept" in data.notes
    assert len(data) + 3 == find("filmtrust").reported["fediar"].interactions


@pytest.mark.data
def test_ml_1m_has_the_publishers_titles(real_data: Path) -> None:
    data = load("ml-1m", real_data)
    most = int(np.bincount(data.items).argmax())
    assert data.item_ids[most] == "2858"
    assert there(data.titles)[most] == "American Beauty (1999)"


@pytest.mark.data
@pytest.mark.parametrize(("name", "clients"), [("fedcia/ml100k_100", 100), ("fedcia/ml100k_943", 943)])
def test_real_client_partitions(real_data: Path, name: str, clients: int) -> None:
    data = load(name, real_data)
    assert size(data) == Size(943, 1682, 100_000)
    assert len(there(data.client_ids)) == clients
    assert np.bincount(there(data.part)).tolist() == [72_000, 8_000, 20_000]
