"""Pinned files: fetched from a server on loopback, checked, resumed, and turned into folders."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attnscope.data import pinned
from attnscope.data.folder import Aligned, CorpusError, CorpusFolder, LabelledRecord, Pair
from attnscope.data.pinned import BASE, FetchError, Pin, fetch, pins
from attnscope.errors import UsageError

COMMIT = "c" * 40


@dataclass
class Server:
    """What is served, how it misbehaves, and what was asked for."""

    base: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    breaks: list[int] = field(default_factory=list)  # bytes sent before each next answer breaks off
    ranges: bool = True
    wrong_range: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append((self.path, wanted))
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(wanted[len("bytes=") : -1]) if wanted and state.ranges else 0
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                told = start - 1 if state.wrong_range else start
                last = len(content) - 1
                self.send_header("Content-Range", f"bytes {told}-{last}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = start + state.breaks.pop(0) if state.breaks else len(content)
            self.wfile.write(content[start:end])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.base = f"http://127.0.0.1:{http.server_address[1]}"
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path))
    monkeypatch.delenv("ATTNSCOPE_MIRROR", raising=False)
    return tmp_path


def serve(server: Server, dataset: str, files: dict[str, bytes]) -> list[Pin]:
    for path, content in files.items():
        server.files[f"/some/where/{COMMIT}/{path}"] = content
    return [
        Pin(dataset, "some/where", COMMIT, path, len(c), hashlib.sha256(c).hexdigest())
        for path, c in files.items()
    ]


def scan_line(number: int) -> str:
    return f"IN: walk {'left ' * number}twice OUT: {'LTURN ' * number}WALK WALK\n"


SCAN = {"tasks.txt": "".join(scan_line(n) for n in range(1, 40)).encode()}
FILE = SCAN["tasks.txt"]


def fields(path: Path) -> list[str]:
    return list(json.loads(gzip.decompress(path.read_bytes()).partition(b"\n")[0]))


def left_over(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "pinned" / "scan").glob("[!.]*"))


def test_a_fetched_corpus_is_a_folder_like_any_other(server: Server, cache: Path):
    (folder,) = fetch("scan", base=server.base, pinned=serve(server, "scan", SCAN))
    assert folder == cache / "corpora" / "scan"
    pairs = CorpusFolder.open(folder).pairs("all", "in", "out")
    assert len(pairs) == 39
    assert pairs[1] == Pair("walk left left twice", "LTURN LTURN WALK WALK")
    assert CorpusFolder.open(folder).sizes == {"all": 39}


def test_what_is_there_already_needs_no_request_and_gives_the_same_bytes(server: Server):
    wanted = serve(server, "scan", SCAN)
    (folder,) = fetch("scan", base=server.base, pinned=wanted)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    server.asked.clear()
    fetch("scan", base=server.base, pinned=wanted)
    assert server.asked == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_broken_download_goes_on_where_it_was(server: Server):
    server.breaks = [100, 250]
    (folder,) = fetch("scan", base=server.base, pinned=serve(server, "scan", SCAN))
    assert [wanted for _, wanted in server.asked] == [None, "bytes=100-", "bytes=350-"]
    assert len(CorpusFolder.open(folder).pairs("all", "in", "out")) == 39


def test_a_download_that_keeps_breaking_is_one_sentence_and_the_next_fetch_resumes(
    server: Server, cache: Path
):
    wanted = serve(server, "scan", SCAN)
    server.breaks = [10, 10, 10]
    with pytest.raises(FetchError, match=rf"30 of {len(FILE)} bytes are kept: run the same com"):
        fetch("scan", base=server.base, pinned=wanted)
    assert left_over(cache) == ["tasks.txt.part"]
    assert not (cache / "corpora").exists()
    server.asked.clear()
    fetch("scan", base=server.base, pinned=wanted)
    assert [asked for _, asked in server.asked] == ["bytes=30-"]
    assert left_over(cache) == ["tasks.txt"]


def test_a_server_without_ranges_starts_over(server: Server):
    server.ranges = False
    server.breaks = [100]
    fetch("scan", base=server.base, pinned=serve(server, "scan", SCAN))
    assert [wanted for _, wanted in server.asked] == [None, "bytes=100-"]


def test_another_range_than_the_one_asked_for_is_never_joined(server: Server):
    server.breaks = [100]
    server.wrong_range = True
    with pytest.raises(FetchError, match="the server sent another range"):
        fetch("scan", base=server.base, pinned=serve(server, "scan", SCAN))


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, cache: Path):
    wanted = serve(server, "scan", SCAN)
    (cache / "pinned" / "scan").mkdir(parents=True)
    (cache / "pinned" / "scan" / "tasks.txt.part").write_bytes(b"x" * (len(FILE) + 5))
    fetch("scan", base=server.base, pinned=wanted)
    assert [asked for _, asked in server.asked] == [f"bytes={len(FILE) + 5}-", None]


def test_a_wrong_checksum_is_one_sentence_and_nothing_is_kept(server: Server, cache: Path):
    (pin,) = serve(server, "scan", SCAN)
    server.files = {path: content[::-1] for path, content in server.files.items()}
    with pytest.raises(FetchError, match=r"is not the pinned file \(its SHA-256 differs\)"):
        fetch("scan", base=server.base, pinned=[pin])
    assert left_over(cache) == []
    assert not (cache / "corpora").exists()


def test_a_part_of_another_file_is_found_by_the_checksum_and_the_next_fetch_is_sound(
    server: Server, cache: Path
):
    wanted = serve(server, "scan", SCAN)
    (cache / "pinned" / "scan").mkdir(parents=True)
    (cache / "pinned" / "scan" / "tasks.txt.part").write_bytes(b"x" * 50)
    with pytest.raises(FetchError, match="SHA-256 differs"):
        fetch("scan", base=server.base, pinned=wanted)
    fetch("scan", base=server.base, pinned=wanted)
    assert left_over(cache) == ["tasks.txt"]


def test_a_file_damaged_in_the_cache_is_fetched_again(server: Server, cache: Path):
    wanted = serve(server, "scan", SCAN)
    fetch("scan", base=server.base, pinned=wanted)
    (cache / "pinned" / "scan" / "tasks.txt").write_bytes(FILE[:-9])
    server.asked.clear()
    fetch("scan", base=server.base, pinned=wanted)
    assert len(server.asked) == 1
    assert (cache / "pinned" / "scan" / "tasks.txt").read_bytes() == FILE


def test_no_more_bytes_than_are_pinned_are_taken(server: Server, cache: Path, monkeypatch):
    wanted = serve(server, "scan", SCAN)
    server.files = {path: content + bytes(10**7) for path, content in server.files.items()}
    sizes = []
    digest = pinned._digest
    monkeypatch.setattr(
        pinned, "_digest", lambda path: (sizes.append(path.stat().st_size), digest(path))[1]
    )
    with pytest.raises(FetchError, match="SHA-256 differs"):
        fetch("scan", base=server.base, pinned=wanted)
    assert sizes == [len(FILE) + 1]


def test_a_missing_file_is_one_sentence_and_is_not_asked_for_again(server: Server):
    wanted = serve(server, "scan", SCAN)
    server.files.clear()
    with pytest.raises(FetchError, match=r"tasks\.txt cannot be fetched: 404 Not Found\.$"):
        fetch("scan", base=server.base, pinned=wanted)
    assert len(server.asked) == 1


def test_no_server_is_one_sentence(server: Server):
    wanted = serve(server, "scan", SCAN)
    with socket.socket() as taken:
        # Bound and not listening: nobody else can serve there.
        taken.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(FetchError, match=r"could not be fetched \(.*refused"):
            fetch("scan", base=base, pinned=wanted)


def test_the_mirror_of_the_environment_is_asked(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ATTNSCOPE_MIRROR", f"{server.base}/")
    fetch("scan", pinned=serve(server, "scan", SCAN))
    assert [path for path, _ in server.asked] == [f"/some/where/{COMMIT}/tasks.txt"]


def test_a_mirror_or_a_name_that_does_not_exist_is_one_sentence():
    with pytest.raises(UsageError, match="'example' is not a URL"):
        fetch("scan", base="example", pinned=[])
    with pytest.raises(UsageError, match=r"'scann' is pinned; did you mean 'scan'\?"):
        fetch("scann")


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNSCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="set ATTNSCOPE_CACHE to a folder"):
        fetch("scan", pinned=[])


def test_the_pinned_files_name_commits_and_checksums_of_known_data_sets():
    assert BASE == "https://raw.githubusercontent.com"
    assert {pin.dataset for pin in pins()} == set(pinned.DATASETS)
    for pin in pins():
        assert len(pin.commit) == 40
        assert len(pin.sha256) == 64
        assert int(pin.commit, 16) >= 0
        assert int(pin.sha256, 16) >= 0
        assert pin.bytes > 0


def test_multi30k_lines_are_stripped_and_every_split_and_language_is_there(server: Server):
    texts = {"en": " a man \na dog\n", "de": "ein Mann\nein Hund  \n", "fr": "un\nchien\n"}
    raw = {
        f"data/task1/raw/{split}.{lang}.gz": gzip.compress(text.encode())
        for split in ("train", "val")
        for lang, text in texts.items()
    }
    (folder,) = fetch("multi30k", base=server.base, pinned=serve(server, "multi30k", raw))
    opened = CorpusFolder.open(folder)
    assert opened.languages == ("en", "de", "fr")
    assert opened.splits == ("train", "val")
    assert opened.pairs("train", "de", "en") == [
        Pair("ein Mann", "a man"),
        Pair("ein Hund", "a dog"),
    ]
    assert opened.pairs("val", "en", "fr")[1] == Pair("a dog", "chien")


def test_scan_has_its_three_splits(server: Server):
    raw = {path: FILE for path in pinned._SCAN_SPLITS}
    (folder,) = fetch("scan", base=server.base, pinned=serve(server, "scan", raw))
    assert CorpusFolder.open(folder).splits == ("all", "simple_test", "simple_train")


def test_a_line_of_another_form_is_named(server: Server):
    raw = {"tasks.txt": FILE + b"walk twice\n"}
    with pytest.raises(CorpusError, match=r"tasks\.txt, line 40: the line does not match"):
        fetch("scan", base=server.base, pinned=serve(server, "scan", raw))


def test_sst_trees_become_five_classes_and_two_without_the_neutral(server: Server):
    trees = (
        "(4 (2 A) (4 (3 fine) (2 8\u00a01\\/2)))\n"
        "(2 (2 So) (2 so))\n"
        "(0 (2 -LRB-) (0 (0 awful) (2 (2 and\\/or) (2 -RRB-))))\n"
        "(1 (1 Dull) (2 .))\n"
    )
    raw = {f"preprocess/SST/{split}.txt": trees.encode() for split in ("train", "dev", "test")}
    binary, fine = fetch("sst", base=server.base, pinned=serve(server, "sst", raw))
    assert (binary.name, fine.name) == ("sst_binary", "sst_fine")
    assert CorpusFolder.open(fine).labelled("dev") == [
        LabelledRecord("dev-0", 4, "A fine 8\u00a01/2"),
        LabelledRecord("dev-1", 2, "So so"),
        LabelledRecord("dev-2", 0, "( awful and/or )"),
        LabelledRecord("dev-3", 1, "Dull ."),
    ]
    assert CorpusFolder.open(binary).labelled("dev") == [
        LabelledRecord("dev-0", 1, "A fine 8\u00a01/2"),
        LabelledRecord("dev-2", 0, "( awful and/or )"),
        LabelledRecord("dev-3", 0, "Dull ."),
    ]
    assert CorpusFolder.open(binary).labels == ("negative", "positive")


def test_ag_news_is_the_test_part_alone_and_says_so(server: Server):
    raw = {"data/ag_news_csv/test.csv": b'"3","A title","Shares "" fell"\n"1","B"," War, again"\n'}
    (folder,) = fetch("ag_news", base=server.base, pinned=serve(server, "ag_news", raw))
    assert folder.name == "ag_news_test"
    assert CorpusFolder.open(folder).labelled("test") == [
        LabelledRecord("test-0", 2, 'Shares " fell'),
        LabelledRecord("test-1", 0, " War, again"),
    ]
    differs = json.loads((folder / "meta.json").read_text())["differs"]
    assert "the training part is not pinned" in differs


def test_gold_alignments_count_from_zero_and_keep_sure_and_possible_apart(server: Server):
    raw = {
        "examples/enfr.src-tgt": b"the house  ||| la maison  \nyes ||| oui\n",
        "examples/enfr.gold": b"2-2 1-1 1p2 2p2\n1p1\n",
        "examples/roen.src-tgt": b"da   ||| yes indeed\n",
        "examples/roen.gold": b"1-2\n",
    }
    french, romanian = fetch(
        "gold_align", base=server.base, pinned=serve(server, "gold_align", raw)
    )
    sure = frozenset({(0, 0), (1, 1)})
    assert CorpusFolder.open(french).aligned("test", "en", "fr") == [
        Aligned("enfr-0", ("the", "house"), ("la", "maison"), sure, sure | {(0, 1)}),
        Aligned("enfr-1", ("yes",), ("oui",), frozenset(), frozenset({(0, 0)})),
    ]
    first = json.loads(gzip.decompress((french / "test.jsonl.gz").read_bytes()).splitlines()[0])
    assert (first["sure"], first["possible"]) == ([[0, 0], [1, 1]], [[0, 1]])
    link = frozenset({(0, 1)})
    assert CorpusFolder.open(romanian).aligned("test", "ro", "en") == [
        Aligned("roen-0", ("da",), ("yes", "indeed"), link, link)
    ]


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_folders_have_the_layout_of_the_data_folder(server: Server):
    """The same names, labels, languages and fields as in the folders that were made by others."""
    data = Path(os.environ["ATTNSCOPE_DATA"])
    tree = b"(4 (2 A) (3 film))\n"
    link = {"src-tgt": b"a ||| b\n", "gold": b"1-1\n"}
    raw = {
        "multi30k": {p.path: gzip.compress(b"a\n") for p in pins() if p.dataset == "multi30k"},
        "scan": {path: FILE for path in pinned._SCAN_SPLITS},
        "sst": {f"preprocess/SST/{split}.txt": tree for split in ("train", "dev", "test")},
        "gold_align": {f"examples/{p}.{e}": link[e] for p in ("enfr", "roen") for e in link},
    }
    for dataset, files in raw.items():
        for folder in fetch(dataset, base=server.base, pinned=serve(server, dataset, files)):
            ours, theirs = CorpusFolder.open(folder), CorpusFolder.open(data / folder.name)
            assert (ours.kind, ours.labels, ours.languages) == (
                theirs.kind,
                theirs.labels,
                theirs.languages,
            )
            assert set(ours.splits) <= set(theirs.splits)
            for path in folder.glob("*.jsonl.gz"):
                assert fields(path) == fields(data / folder.name / path.name)
