"""Every format, read from small files made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from data_files import Write
from fedrec.data import readers
from fedrec.data.assemble import assemble
from fedrec.data.interactions import TEST, TRAIN, VALID, Interactions
from fedrec.data.readers import columns, content, delimited, sequences
from fedrec.errors import BadInput
from there import there


def load(path: Path) -> Interactions:
    return assemble(readers.read(path), "x")


def triples(data: Interactions) -> list[tuple[str, str, int | None]]:
    """User id, item id and time of each row, in order."""
    times = [None] * len(data) if data.times is None else data.times.tolist()
    return list(zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), times, strict=True))


EXPECTED = [("2", "7", 10), ("2", "30", 20), ("10", "7", 5)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "user,item,rating,timestamp\n2,30,4,20\n2,7,5,10\n10,7,1,5\n"),
        ("a.csv", "2,30,4,20\r\n2,7,5,10\r\n10,7,1,5\r\n"),
        ("a.csv", "\ufeffUserId, Item ID ,Time\n2,30,20\n2,7,10\n10,7,5"),
        ("a.tsv", "timestamp\titem_id\tuser_id\tcolour\n20\t30\t2\tred\n10\t7\t2\tred\n5\t7\t10\tred\n"),
        ("a.txt", "2 30 4 20\n2   7 5 10\n10 7 1 5 \n"),
        ("a.csv.gz", "uid;iid;time\n2;30;20\n\n2;7;10\n10;7;5\n"),
        ("a.csv", '"user","item","time"\n"2","30","20"\n"2","7","10"\n"10","7","5"\n'),
        ("a.inter", "user_id:token\titem_id:token\ttimestamp:float\n2\t30\t20\n2\t7\t10.0\n10\t7\t5\n"),
        ("u.data", "2\t30\t4\t20\n2\t7\t5\t10\n10\t7\t1\t5\n"),
        ("ratings.dat", "2::30::4::20\n2::7::5::10\n10::7::1::5\n"),
    ],
)
def test_one_world_in_every_delimited_format(write: Write, name: str, text: str) -> None:
    data = load(write(name, text))
    assert triples(data) == EXPECTED
    assert data.users.dtype == data.items.dtype == np.int32
    assert data.times is not None
    assert data.times.dtype == np.int64


@pytest.mark.parametrize("kind", ["int", "float", "text", "category", "date"])
def test_parquet(tmp_path: Path, kind: str) -> None:
    users: pa.Array = pa.array([2, 2, 10])
    items: pa.Array = pa.array([30, 7, 7])
    times: pa.Array = pa.array([20, 10, 5])
    if kind == "float":
        users, items, times = (column.cast(pa.float64()) for column in (users, items, times))
    if kind in ("text", "category"):
        users, items, times = (column.cast(pa.string()) for column in (users, items, times))
    if kind == "category":
        users = users.dictionary_encode()
    if kind == "date":
        times = times.cast(pa.timestamp("s"))
    names = {"user_id": users, "item_id": items, "timestamp": times, "rating": pa.array([1.0, 2.0, 3.0])}
    parquet.write_table(pa.table(names), tmp_path / "a.parquet")
    assert triples(load(tmp_path / "a.parquet")) == EXPECTED


def test_parquet_with_ratings_as_text_titles_and_clients(tmp_path: Path) -> None:
    names = {
        "user": ["a", "b"],
        "item": ["x", "y"],
        "rating": ["1", "0.5"],
        "title": ["X!", "Y!"],
        "client": ["c", "c"],
        "time": [1.5, 1.25],
    }
    parquet.write_table(pa.table(names), tmp_path / "a.parquet")
    data = load(tmp_path / "a.parquet")
    assert data.titles is not None
    assert data.titles.tolist() == ["X!", "Y!"]
    assert data.client_ids is not None
    assert data.client_ids.tolist() == ["c"]


def test_iso_dates_become_seconds(write: Write) -> None:
    data = load(write("a.csv", "user,item,date\na,x,1970-01-02\na,y,1970-01-01 00:00:07\n"))
    assert triples(data) == [("a", "y", 7), ("a", "x", 86_400)]
    zoned = load(write("b.csv", "user,item,date\na,x,1970-01-01T00:00:09Z\n"))
    assert triples(zoned) == [("a", "x", 9)]


def test_fractions_of_a_second_still_order(write: Write) -> None:
    data = load(write("a.csv", "user,item,time\na,x,5.75\na,y,5.25\n"))
    assert triples(data) == [("a", "y", 0), ("a", "x", 1)]


def test_third_column_of_large_whole_numbers_is_a_time(write: Write) -> None:
    data = load(write("a.csv", "1,5,881250949\n1,6,881250940\n"))
    assert [item for _, item, _ in triples(data)] == ["6", "5"]
    assert any("read as a time" in note for note in data.notes)
    assert load(write("b.csv", "1,5,3\n1,6,4\n")).times is None


def test_title_column_of_a_csv(write: Write) -> None:
    data = load(write("a.csv", 'user,item,title\na,x,"One, two"\na,y,Three\n'))
    assert data.titles is not None
    assert data.titles.tolist() == ["One, two", "Three"]


def test_sequences(write: Write) -> None:
    data = load(write("s.txt", "2 30 7 9\n10 7\n\n3 7 30 30\n"))
    assert triples(data) == [
        ("2", "30", 0),
        ("2", "7", 1),
        ("2", "9", 2),
        ("3", "7", 0),
        ("3", "30", 1),
        ("10", "7", 0),
    ]
    assert any("is taken as their order in time" in note for note in data.notes)
    assert any("1 repeats" in note for note in data.notes)


@pytest.mark.parametrize("mark", [" ", "\t"])
def test_equally_many_items_for_each_user_are_no_ratings_and_times(write: Write, mark: str) -> None:
    def put(name: str, *lines: str) -> Path:
        return write(name, "".join(line.replace(" ", mark) + "\n" for line in lines))

    with pytest.raises(BadInput, match="a table, or a line for each user"):
        readers.read(put("a.txt", "1 10 11 12", "2 12 13 14", "3 14 15 16"))
    assert len(readers.read(put("a.txt", "1 10 3 12", "2 12 3 14", "2 14 3 16"))) == 3  # a user twice
    assert len(readers.read(put("a.txt", "1 10 3 99", "2 12 4 98"))) == 2  # no rating is an item
    assert len(readers.read(put("a.txt", "user item rating", "1 10 12", "2 12 14"))) == 2
    for part, rows in {"train": "1 10 3\n1 3 3\n", "test": "1 11 3\n"}.items():
        write(f"split/{part}.tsv", rows.replace(" ", mark))
    assert len(readers.read(write("split/valid.tsv", f"1{mark}4{mark}4\n2{mark}5{mark}4\n").parent)) == 5


def test_telling_sequences_from_tables() -> None:
    assert sequences.looks_like(["1 2 3 4 5 6 7", "2 3"])
    assert not sequences.looks_like(["1 2 3", "1 2 4"])
    assert not sequences.looks_like(["1 2 3", "2 2 4", "3 5 6", "4 4 4", "5 5 5", "6 6"])  # a torn row
    assert not sequences.looks_like(["1,2 3", "2,3 4 5"])
    assert not sequences.looks_like(["a b c", "a b"])  # the same user twice
    assert not sequences.looks_like([])


def test_recbole_titles(write: Write) -> None:
    inter = write("d/a.inter", "user_id:token\titem_id:token\n1\t5\n1\t6\n")
    write("d/a.item", 'item_id:token\tmovie_title:token_seq\tyear:token\n5\tFive "5"\t1990\n7\tSeven\t1991\n')
    data = load(inter.parent)
    assert data.titles is not None
    assert data.titles.tolist() == ['Five "5"', "6"]
    assert any("1 items have no title" in note for note in data.notes)


def test_recbole_items_without_a_title_column(write: Write) -> None:
    inter = write("a.inter", "user_id:token\titem_id:token\n1\t5\n")
    write("a.item", "item_id:token\tyear:token\n5\t1990\n")
    assert load(inter).titles is None


def test_movielens_titles_are_latin_1(write: Write) -> None:
    tabs = write("a/u.data", "1\t5\t3\t10\n")
    write("a/u.item", "5|Misérables, Les (1995)|01-Jan-1995||http\n", encoding="latin-1")
    colons = write("b/ratings.dat", "1::5::3::10\n")
    write("b/movies.dat", "5::Misérables: Les (1995)::Drama\n", encoding="latin-1")
    assert there(load(tabs).titles).tolist() == ["Misérables, Les (1995)"]
    assert there(load(colons).titles).tolist() == ["Misérables: Les (1995)"]


def test_ml_1m_with_titles_for_ids_gets_the_publishers_ids_back(write: Write) -> None:
    movies = [f"Movie {number}" for number in range(1, 3884)]
    rows = "1m_2\tMovie 91\t4\t20\n1m_2\tMovie 1\t5\t10\n1m_10\tMovie 3883\t1\t5\n"
    inter = write("d/ml-1m.inter", "user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + rows)
    read = readers.READERS["movielens-titled"]
    assert triples(assemble(read(inter), "x"))[0] == ("2", "Movie 1", 10)  # no list of movies: titles are the ids
    items = write("d/ml-1m.item", "item_id:token\tyear:float\n" + "".join(f"{movie}\t1990\n" for movie in movies))
    data = assemble(read(inter), "x")
    assert triples(data) == [("2", "1", 10), ("2", "92", 20), ("10", "3952", 5)]  # nobody is movie 91
    assert there(data.titles).tolist() == ["Movie 1", "Movie 91", "Movie 3883"]
    items.write_text("item_id:token\nMovie 1\n")
    with pytest.raises(BadInput, match="lists 1 movies where MovieLens-1M has 3883"):
        read(inter)
    items.write_text("item_id:token\n" + "".join(f"Film {number}\n" for number in range(3883)))
    with pytest.raises(BadInput, match=r"ml-1m\.inter line 2: ml-1m\.item does not list this movie"):
        read(inter)


def test_titles_for_other_ids_are_left_out(write: Write) -> None:
    path = write("u.data", "1\t5\t3\t10\n")
    write("u.item", "6|Six|x\n")
    data = load(path)
    assert data.titles is None
    assert any("lists none" in note for note in data.notes)


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".tsv.gz", ".csv.gz", ".parquet"])
def test_ready_split(write: Write, tmp_path: Path, ending: str) -> None:
    rows = {"train": [("a", "1"), ("b", "2")], "valid": [("a", "2")], "test": [("a", "3"), ("b", "1")]}
    for part, pairs in rows.items():
        if ending == ".parquet":
            made = pa.table({"user": [u for u, _ in pairs], "item": [i for _, i in pairs]})
            parquet.write_table(made, tmp_path / f"{part}.parquet")
        else:
            mark = "\t" if "tsv" in ending else ","
            text = f"user{mark}item\n" + "".join(f"{u}{mark}{i}\n" for u, i in pairs)
            write(part + ending, text)
    data = load(tmp_path)
    assert triples(data) == [
        ("a", "1", None),
        ("a", "2", None),
        ("a", "3", None),
        ("b", "2", None),
        ("b", "1", None),
    ]
    assert data.part is not None
    assert data.part.tolist() == [TRAIN, VALID, TEST, TRAIN, TEST]


def test_ready_split_with_clients_times_and_without_valid(write: Write, tmp_path: Path) -> None:
    write("train.csv", "client,user,item,rating,time\nnorth,a,1,3,9\nsouth,b,1,2,9\n")
    write("test.csv", "client,user,item,rating,time\nnorth,a,2,1,8\n")
    data = load(tmp_path)
    assert data.client_ids is not None
    assert data.client_of_user is not None
    assert data.client_ids[data.client_of_user].tolist() == ["north", "south"]
    assert triples(data) == [("a", "2", 8), ("a", "1", 9), ("b", "1", 9)]


@pytest.mark.parametrize(("items", "titled"), [(("1", "2"), True), (("1", "9"), False)])
def test_ready_split_takes_titles_only_when_all_items_are_known(
    write: Write, tmp_path: Path, items: tuple[str, str], titled: bool
) -> None:
    write("train.tsv", f"user\titem\na\t{items[0]}\n")
    write("test.tsv", f"user\titem\na\t{items[1]}\n")
    write("movies.dat", "1::One::x\n2::Two::x\n3::Three::x\n")
    data = load(tmp_path)
    assert (data.titles is not None) is titled
    assert any("no titles" in note for note in data.notes) is not titled


@pytest.mark.parametrize("header", ["userID\tartistID\tweight\r\n", ""])
def test_lastfm_with_and_without_header(write: Write, header: str) -> None:
    path = write("user_artists.dat", header + "2\t51\t13883\r\n2\t52\t11690\r\n3\t51\t7\r\n")
    write("artists.dat", 'id\tname\turl\tpictureURL\n51\tDuran "D" Duran\tu\tp\n52\tMorcheeba\tu\tp\n')
    data = load(path)
    assert triples(data) == [("2", "51", None), ("2", "52", None), ("3", "51", None)]
    assert there(data.titles).tolist() == ['Duran "D" Duran', "Morcheeba"]


def test_book_crossing(write: Write) -> None:
    ratings = '"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"0"\n"276726";"0155061224";"5"\n'
    path = write("d/BX-Book-Ratings.csv", ratings)
    books = (
        '"ISBN";"Book-Title";"Book-Author"\n"034545104X";"Flesh Tones: A Novel";"M. J. Rose"\n'
        '"0155061224";"Peter \\"Rabbit\\" &amp; Café";"B"\n'
    )
    write("d/BX-Books.csv", books, encoding="latin-1")
    data = load(path.parent)
    assert triples(data) == [("276725", "034545104X", None), ("276726", "0155061224", None)]
    assert there(data.titles).tolist() == ['Peter "Rabbit" & Café', "Flesh Tones: A Novel"]
    assert any("1 rows are implicit" in note for note in data.notes)


FOURSQUARE = (
    "470\t49bbd6c0\t4bf58dd8\tArts & Crafts Store\t40.71\t-74.00\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    "470\t49bbd6c0\t4bf58dd8\tArts & Crafts Store\t40.71\t-74.00\t-240\tTue Apr 03 18:00:05 +0000 2012\n"
    "979\t4a43c0ae\t4bf58dd9\tBridge\t40.60\t-74.04\t-240\tTue Apr 03 18:00:25 +0000 2012\n"
)


def test_foursquare_repeats_merge_to_the_earliest(write: Write) -> None:
    data = load(write("dataset_TSMC2014_NYC.txt", FOURSQUARE))
    assert triples(data) == [("470", "49bbd6c0", 1_333_476_005), ("979", "4a43c0ae", 1_333_476_025)]
    assert there(data.titles).tolist() == ["Arts & Crafts Store", "Bridge"]
    assert data.notes == ("1 repeats of a user-item pair merged, the earliest kept",)


def test_yelp(write: Write) -> None:
    path = write(
        "yelp_academic_dataset_review.json",
        '{"user_id":"u_1","business_id":"b-9","stars":3.0,"date":"2018-07-07 22:09:11"}\n\n'
        '{"review_id":"s","user_id":"u_1","business_id":"b-8","stars":1,"date":"2016-07-07 00:00:00"}\n',
    )
    write(
        "yelp_academic_dataset_business.json",
        '{"business_id":"b-9","name":"Café"}\n{"business_id":"zz","name":"Z"}\n',
    )
    data = load(path)
    assert triples(data) == [("u_1", "b-8", 1_467_849_600), ("u_1", "b-9", 1_531_001_351)]
    assert there(data.titles).tolist() == ["b-8", "Café"]


def test_yelp_without_businesses(write: Write) -> None:
    line = '{"user_id":"u","business_id":"b","stars":3,"date":"2018-07-07"}\n'
    assert load(write("review.json", line)).titles is None


def test_qb_article_keeps_clicks(write: Write) -> None:
    text = "user_id,item_id,click,like,read\n1,5,1,0,1\n1,6,0,0,0\n2,5,1,1,1\n"
    data = load(write("QB-article.csv", text))
    assert triples(data) == [("1", "5", None), ("2", "5", None)]
    assert data.notes == ("1 rows with a rating of 0 or less do not count as interactions",)


@pytest.mark.parametrize("header", ["user,item,timestamp\n", ""])
def test_microlens(write: Write, header: str) -> None:
    path = write("MicroLens-100k_pairs.csv", header + "36121,9580,1583378629552\n36121,11033,1583379401503\n")
    write("MicroLens-100k_title_en.csv", "item,title\n9580,Cats, and dogs\n11033,Rain\n")
    data = load(path)
    assert triples(data) == [("36121", "9580", 1_583_378_629_552), ("36121", "11033", 1_583_379_401_503)]
    assert there(data.titles).tolist() == ["Cats, and dogs", "Rain"]


def test_published_files_forgive_repeats_and_a_torn_end(write: Write) -> None:
    path = write("r.csv", "1,5,3,10\n1,5,3,10\n2,6,1,11\n2,7")
    data = assemble(readers.READERS["published"](path), "x")
    assert triples(data) == [("1", "5", 10), ("2", "6", 11)]
    assert data.notes == (
        "r.csv: left out the last line, which is incomplete",
        "1 repeats of a user-item pair merged, the earliest kept",
    )


def test_the_only_file_of_a_folder(write: Write, tmp_path: Path) -> None:
    write("ratings.csv", "1,5\n")
    write("other.csv", "7,7\n")
    assert triples(load(tmp_path)) == [("1", "5", None)]


def test_header_words() -> None:
    assert columns.meaning("User ID") == "user"
    assert columns.meaning("item_id:token") == "item"
    assert columns.meaning("colour") is None
    assert delimited.sniff("1::2") == "::"
    assert delimited.sniff("alone") == ","


ids = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**9)),
    min_size=1,
    max_size=30,
    unique_by=lambda row: row[:2],
)


@given(ids, st.sampled_from([",", "\t", ";", " ", "parquet"]), st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_written_is_read(tmp_path: Path, rows: list[tuple[int, int, int]], mark: str, header: bool) -> None:
    path = tmp_path / ("a.parquet" if mark == "parquet" else "a.data")
    if mark == "parquet":
        user, item, time = (list(column) for column in zip(*rows, strict=True))
        parquet.write_table(pa.table({"user": user, "item": item, "time": time}), path)
    else:
        names = mark.join(("user", "item", "rating", "time")) + "\n" if header else ""
        rows = [*rows, (rows[0][0], 10**6 + 1, 1)]  # users who are all there once may be users with their items
        path.write_text(names + "".join(mark.join(map(str, (u, i, 1, t))) + "\n" for u, i, t in rows))
    want = sorted(((u, t, n, i) for n, (u, i, t) in enumerate(rows)))
    assert triples(load(path)) == [(str(u), str(i), t) for u, t, _, i in want]


@given(
    st.dictionaries(
        st.text("abcXYZ", min_size=1, max_size=4),
        st.lists(st.text("pqr", min_size=1, max_size=3), min_size=1, unique=True),
        min_size=1,
    )
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_sequences_round_trip(tmp_path: Path, lines: dict[str, list[str]]) -> None:
    path = tmp_path / "s.txt"
    path.write_text("".join(" ".join([user, *items]) + "\n" for user, items in lines.items()))
    data = assemble(sequences.read(path), "x")
    assert triples(data) == [(u, i, n) for u in sorted(lines) for n, i in enumerate(lines[u])]


def test_gzip_head_and_whole(write: Write) -> None:
    path = write("a.csv.gz", "1,2\n" * 3)
    assert content.head(path, 4) == b"1,2\n"
    assert content.contents(path) == b"1,2\n" * 3
