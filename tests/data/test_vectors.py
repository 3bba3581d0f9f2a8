"""Word vectors from text and folders, and what is said about damaged ones."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from attnscope.data.vectors import digest_of_vectors, find_vectors, read_vectors
from attnscope.errors import AttnscopeError, UsageError
from cases import for_each

TEXT = "the 0.5 -1 2e-3\nCat 1 2 3\n, 0 0 0\n"
EXPECTED = np.array([[0.5, -1, 2e-3], [1, 2, 3], [0, 0, 0]], dtype=np.float32)
HALVES = EXPECTED.astype(np.float16)
in_place = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return gzip.compress(buffer.getvalue())


def folder(path, words="the\nCat\n,\n", array=HALVES):
    path.mkdir(exist_ok=True)
    (path / "words.txt.gz").write_bytes(gzip.compress(words.encode()))
    (path / "vectors.f16.npy.gz").write_bytes(array if isinstance(array, bytes) else npy(array))
    return path


@for_each(
    ("name", "content"),
    [
        ("glove.txt", TEXT.encode()),
        ("glove.txt.gz", gzip.compress(TEXT.encode())),
        ("word2vec.vec", f"3 3\n{TEXT}".encode()),
        ("trailing.txt", TEXT.replace("\n", " \n").encode()),
        ("windows.txt", TEXT.replace("\n", "\r\n").encode()),
        ("unfinished.txt", TEXT.rstrip("\n").encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_text_is_read_in_each_of_its_forms(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    vectors = read_vectors(tmp_path / name)
    assert vectors.words == ("the", "Cat", ",")
    assert vectors.array.dtype == np.float32
    assert vectors.array.tolist() == EXPECTED.tolist()
    assert vectors.dimension == 3


def test_a_folder_of_words_and_an_array_is_read(tmp_path):
    vectors = read_vectors(folder(tmp_path / "vectors"))
    assert vectors.words == ("the", "Cat", ",")
    assert vectors.array.tolist() == HALVES.tolist()


def test_words_of_a_folder_may_share_vectors(tmp_path):
    path = folder(tmp_path / "vectors", "the\nCat\n,\ncats\n")
    alone = digest_of_vectors(path)
    rows = np.array([2, 1, 0, 1], dtype=np.uint16)
    (path / "rows.u16.npy.gz").write_bytes(npy(rows))
    vectors = read_vectors(path)
    assert vectors.words == ("the", "Cat", ",", "cats")
    assert vectors.array.tolist() == HALVES[rows].tolist()
    assert digest_of_vectors(path) != alone


@for_each(
    "rows",
    [
        np.array([0, 1], dtype=np.uint16),
        np.array([0, 1, 3], dtype=np.uint16),
        np.array([0, 1, -1]),
        np.array([[0, 1, 2]], dtype=np.uint16),
    ],
    ids=["too few", "no such row", "signed", "a table"],
)
def test_rows_that_do_not_fit_the_words_are_one_sentence(tmp_path, rows):
    path = folder(tmp_path / "vectors")
    (path / "rows.u16.npy.gz").write_bytes(npy(rows))
    with pytest.raises(UsageError, match=r"rows\.u16\.npy\.gz is a .* 3 whole numbers below 3"):
        read_vectors(path)


words = st.text(st.characters(codec="utf-8", exclude_characters=" \n\r"), min_size=1, max_size=5)


@in_place
@given(st.data())
def test_text_and_folder_give_back_what_was_written(tmp_path, data):
    spelled = data.draw(st.lists(words, min_size=1, max_size=5, unique=True))
    shape = len(spelled), data.draw(st.integers(2, 4))
    array = data.draw(arrays(np.float16, shape, elements=st.floats(-9, 9, width=16)))
    lines = [
        " ".join([word, *map(str, row.tolist())]) for word, row in zip(spelled, array, strict=True)
    ]
    (tmp_path / "v.txt").write_bytes("\n".join(lines).encode())
    for path in (
        tmp_path / "v.txt",
        folder(tmp_path / "v", "".join(f"{word}\n" for word in spelled), array),
    ):
        vectors = read_vectors(path)
        assert vectors.words == tuple(spelled)
        assert (vectors.array == array).all()


def test_a_word_is_found_as_it_is_written_and_else_in_lower_case(tmp_path):
    (tmp_path / "v.txt").write_text("The 1\nthe 2\ncat 3\n")
    vectors = read_vectors(tmp_path / "v.txt")
    assert [vectors.row(word) for word in ("The", "the", "THE", "Cat", "dog")] == [0, 1, 1, 2, None]


def test_of_a_repeated_word_the_first_vector_is_kept_and_said_so(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 1\nb 2 2\na 3 3\nb 4 4\nc 5 5\n")
    said = r"v\.txt has 2 repeated words, 'a' among them: the first vector of each is kept\.$"
    with pytest.warns(UserWarning, match=said):
        vectors = read_vectors(tmp_path / "v.txt")
    assert vectors.words == ("a", "b", "c")
    assert vectors.array[:, 0].tolist() == [1, 2, 5]


@for_each(
    ("content", "message"),
    [
        (b"a 1 2\nb 1\n", "line 2: a word and 2 numbers expected here, not 2 columns"),
        (b"a 1 2\nb 1 2 3\n", "line 2: a word and 2 numbers expected here, not 4 columns"),
        (b"a 1 2\n\nb 1 2\n", "line 2: a word and 2 numbers expected here, not 0 columns"),
        (b"a 1 2\n 1 2\n", "line 2: a word and 2 numbers expected here, not 2 columns"),
        (b"a\n", "line 1: a word and its numbers expected here, not 1 columns"),
        (b"2 3\na 1 2\nb 1 2\n", "line 2: a word and 3 numbers expected here"),
        (b"3 2\na 1 2\nb 1 2\n", "line 1: it announces 3 words, and 2 follow"),
        (b"a 1 2\nb 1 x\n", "line 2: 'x' is not a number"),
        (b"a 1 2\nb 1 nan\n", "line 2: a number is not finite"),
        (b"a 1 2\nb 1 1e99\n", "line 2: a number is not finite"),
        (b"a 1 2\n\xff 1 2\n", "line 2: it is not UTF-8"),
        (b"", "has no word vectors in it"),
        (b"0 3\n", "has no word vectors in it"),
    ],
)
def test_damaged_text_is_one_sentence_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UsageError) as caught:
            read_vectors(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@for_each(
    ("text", "reason"),
    [
        ("a 1_000 2\n", "'1_000' is not a number"),
        ("a １ 2\n", "'１' is not a number"),
        ("a 1\t 2\n", "is not a number"),
        ("a 1e300 2\n", "not finite"),
        ("2 0\na\nb\n", "numbers expected"),
        ("1" * 5000 + " 2\na 1 2\n", "numbers expected"),
        ("１ 2\na 1 2\n", "numbers expected|is not a number"),
        ("a " + "1" * (2**20 + 5), "more than 1048576 bytes"),
    ],
)
def test_numbers_that_python_alone_would_read_are_refused(tmp_path, text, reason):
    (tmp_path / "v.txt").write_text(text, encoding="utf8")
    with pytest.raises(UsageError, match=reason):
        read_vectors(tmp_path / "v.txt")


@for_each(
    "content",
    [
        TEXT.encode(),
        gzip.compress(TEXT.encode())[:-9],
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff",
    ],
    ids=["plain", "cut", "garbled"],
)
def test_a_damaged_archive_is_one_sentence(tmp_path, content):
    (tmp_path / "v.txt.gz").write_bytes(content)
    with pytest.raises(
        UsageError, match=r"v\.txt\.gz is (not sound|truncated or damaged) gzip .*[^.]\.$"
    ):
        read_vectors(tmp_path / "v.txt.gz")


@for_each(
    ("changes", "message"),
    [
        ({"words": "the\nCat\n"}, r"shape \(3, 3\): .*words.txt.gz asks for 2 rows"),
        ({"array": EXPECTED[0]}, r"shape \(3,\)"),
        ({"array": np.ones((3, 3), int)}, "int64 array"),
        ({"array": np.full((3, 3), np.inf)}, "row 1: a number is not finite"),
        ({"array": b"no archive"}, "is not sound gzip"),
        ({"array": npy(EXPECTED)[:-20]}, "is truncated"),
        ({"array": gzip.compress(b"no array")}, "is not a NumPy array"),
    ],
)
def test_a_damaged_folder_is_one_sentence(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message):
        read_vectors(folder(tmp_path / "v", **changes))


def test_a_folder_without_its_files_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"words\.txt\.gz cannot be read \(No such file"):
        read_vectors(tmp_path)
    with pytest.raises(AttnscopeError, match=r"words\.txt\.gz cannot be read \(No such file"):
        digest_of_vectors(tmp_path)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("A pickle was opened.",))


@pytest.mark.parametrize(
    "content",
    [gzip.compress(pickle.dumps(Trap())), npy(np.array([Trap()], dtype=object), allow_pickle=True)],
    ids=["bare", "in-array"],
)
def test_a_pickle_is_never_opened(tmp_path, content):
    with pytest.raises(UsageError, match="is not a NumPy array"):
        read_vectors(folder(tmp_path / "v", array=content))


def test_a_bare_name_is_looked_up_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    folder(tmp_path / "data" / "mine")
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "data"))
    assert find_vectors("mine") == tmp_path / "data" / "mine"
    with pytest.raises(UsageError, match=r"no word vectors at yours or .*yours; .*random"):
        find_vectors("yours")
    with pytest.raises(UsageError, match=r"^There are no word vectors at other/mine; .*random"):
        find_vectors("other/mine")
    monkeypatch.delenv("ATTNSCOPE_DATA")
    with pytest.raises(UsageError, match="set ATTNSCOPE_DATA"):
        find_vectors("mine")


def test_a_digest_follows_the_content_of_every_file(tmp_path):
    one = digest_of_vectors(folder(tmp_path / "v"))
    assert digest_of_vectors(folder(tmp_path / "elsewhere")) == one
    assert digest_of_vectors(folder(tmp_path / "v", words="the\nCat\n.\n")) != one
    assert digest_of_vectors(folder(tmp_path / "v", array=EXPECTED[::-1])) != one


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_the_shared_vectors_are_read_whole():
    vectors = read_vectors("glove_100d")
    assert len(vectors.words) == 83_399
    assert vectors.dimension == 100
    assert vectors.row("The") == vectors.row("the") is not None
